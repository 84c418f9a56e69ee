//! Runs with a tape: what their agents print is read, folded, and passed to the core; how far that went is
//! stored with what came of it. `docs/design/014-tape.md` has the reasons.
//!
//! Everything one stretch of a tape leads to is committed in one batch, with the cursor. If it leads to
//! nothing, the cursor waits for the session's next batch or for the sweep. So what is stored never knows
//! more than the core was told, and a daemon that resumes from it hears everything once. A batch that fails
//! discards the session together with its fold, and the session begins again from the stored cursor
//! (`failed.rs`).

use super::Engine;
use crate::crash;
use crate::define::config::Config;
use crate::engine::conversation::{is_headless, only_resumes};
use crate::engine::feed::FeedNews;
use crate::engine::input::{LoopInput, Swept};
use crate::engine::session::{Pending, Tracked};
use crate::engine::taping::{GatheredBatch, HeardTape, Judgement, NotedCursor, TapeReading};
use crate::ports::shims::observe::SessionSeen;
use crate::ports::tapes::{Passage, TapeStretch, Taped};
use pinfold_agents::{EndedBy, EntryKind, Fold, Observation, Protocol, Setup};
use pinfold_core::event::{Machine, Shim};
use pinfold_core::exit::Exit;
use pinfold_core::inbox::Read;
use pinfold_core::life::{Life, Purpose};
use pinfold_core::{Boot, RunNumber};
use pinfold_shim::tape::Position;
use pinfold_shim::{Command, Exited, TapeEnd, TapeReport};
use pinfold_store::{Batch, Outcome, SessionId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::warn;

/// How often cursors are stored for sessions whose output led to nothing.
const SWEEP: Duration = Duration::from_secs(1);

impl Engine {
    /// The tape of the live run, if it has one.
    pub(super) fn taping(&mut self, id: SessionId) -> Option<&mut HeardTape> {
        self.sessions.get_mut(&id)?.run.as_mut()?.taping.as_deref_mut()
    }

    fn taping_of(&mut self, id: SessionId, run: RunNumber) -> Option<&mut HeardTape> {
        self.taping(id).filter(|taping| taping.fold.run() == run)
    }

    /// Begins to fold the tape of a run that was just decided. Its cursor belongs in the same batch.
    pub(super) fn begin_fold(&mut self, id: SessionId, run: RunNumber) {
        let now = self.ports.clock.boot();
        let alone = self.alone.is_some();
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        let Life::Starting { purpose: Purpose::Headless, .. } = tracked.session.life() else { return };
        if alone || !tracked.definition.has_tape() {
            return;
        }
        let (setup, floor) = (setup(tracked, &self.config), tracked.floor);
        let (fold, first) = Fold::begin(run, setup);
        if let Some(run) = tracked.live(run) {
            run.taping = Some(Box::new(HeardTape::begin(fold, first, floor, now)));
        }
    }

    /// Resumes the fold of a run that an earlier daemon had begun, or this one before a failure.
    pub(super) fn resume_fold(&mut self, id: SessionId) {
        let now = self.ports.clock.boot();
        let stored = self.ports.journal.cursor(id);
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if let Ok(Some(cursor)) = &stored {
            (tracked.floor, tracked.heard) = (cursor.position, cursor.position);
        }
        let Some(run) = tracked.session.live_run() else { return };
        if !is_headless(tracked.session.life()) {
            return;
        }
        let floor = tracked.floor;
        let taping = match &stored {
            Ok(Some(cursor)) if cursor.run == run => HeardTape::resume(run, &cursor.state, floor, now),
            // The run was decided with a change of its definition, and nothing of it has been stored since.
            Ok(_) => {
                let (fold, first) = Fold::begin(run, setup(tracked, &self.config));
                HeardTape::begin(fold, first, floor, now)
            }
            Err(problem) => {
                warn!(session = tracked.name, "what was heard of its run is not known: {problem}");
                HeardTape::resume(run, "", floor, now)
            }
        };
        tracked.heard = taping.next;
        if let Some(run) = tracked.live(run) {
            run.taping = Some(Box::new(taping));
        }
    }

    /// The agent of a run has started: what was learned before counts now.
    pub(super) fn fold_started(&mut self, id: SessionId, run: RunNumber) {
        let Some(taping) = self.taping_of(id, run) else { return };
        let first = std::mem::take(&mut taping.first);
        self.gather(id, |engine| engine.learn_all(id, run, first));
        self.speak(id);
    }

    /// Handles a shim's report about a tape.
    pub(super) fn taped(&mut self, id: SessionId, report: TapeReport) {
        match report {
            TapeReport::Grown { run, end } => {
                if let Some(taping) = self.taping_of(id, run) {
                    taping.told = Some(end.0);
                    self.read_on(id);
                }
            }
            TapeReport::Said { run, said } => {
                let Some(taping) = self.taping_of(id, run) else { return };
                let behind = said.said.0 > taping.fold.last_said();
                self.note_written(id, run, said.written.0);
                if behind {
                    self.read_all(id);
                }
                self.speak(id);
            }
            TapeReport::Refused { run, number, why } => self.not_said(id, run, number.0, why),
            TapeReport::State { run, flow } => {
                let Some(taping) = self.taping_of(id, run) else { return };
                taping.flow = flow;
                self.feed.note(id, FeedNews::Live);
                self.speak(id);
            }
        }
    }

    /// Notes that the agent's input took everything up to this number.
    fn note_written(&mut self, id: SessionId, run: RunNumber, number: u64) {
        let now = self.ports.clock.boot();
        let Some(taping) = self.taping_of(id, run) else { return };
        let told = taping.fold.written(number);
        if !told.is_empty() {
            taping.changed.get_or_insert(now);
            self.gather(id, |engine| engine.learn_all(id, run, told));
        }
    }

    /// Reads all of a tape from where reading stopped: it may have more than was reported.
    pub(super) fn read_all(&mut self, id: SessionId) {
        if let Some(taping) = self.taping(id) {
            taping.told = None;
        }
        self.read_on(id);
    }

    /// Reads a tape from where reading stopped, up to the end last reported if no more is wanted.
    fn read_on(&mut self, id: SessionId) {
        let folder = self.home.tape(id);
        let Some(taping) = self.taping(id) else { return };
        if taping.reading != TapeReading::No {
            taping.reading = TapeReading::Again;
            return;
        }
        taping.reading = TapeReading::UnderWay;
        let (run, from) = (taping.fold.run(), taping.next);
        let is_judged = taping.end.is_some() || taping.seen.is_some();
        let to = taping.told.take().filter(|to| *to > from && !is_judged);
        let handle = self.handle.clone();
        let told = move |passage| handle.tell(LoopInput::Tape { id, run, from, passage: Box::new(passage) });
        self.ports.tapes.read(TapeStretch { id, folder, run, from, to }, Box::new(told));
    }

    /// A part of a tape was read.
    pub(super) fn passage(&mut self, id: SessionId, run: RunNumber, from: u64, passage: Passage) {
        let Some(taping) = self.taping_of(id, run) else { return };
        if taping.reading == TapeReading::No || taping.next != from {
            return;
        }
        let again = std::mem::replace(&mut taping.reading, TapeReading::No) == TapeReading::Again;
        taping.next = passage.next.max(from);
        let Passage { entries, more, problem, .. } = passage;
        if let Some(errno) = problem {
            warn!(%id, run = run.0, "its tape cannot be read: {errno}");
        }
        self.fold_entries(id, run, &entries);
        crash::point("fold.heard");
        if more || again {
            self.read_on(id);
        }
        self.judge(id, !more && !again);
        self.speak(id);
    }

    fn fold_entries(&mut self, id: SessionId, run: RunNumber, entries: &[Taped]) {
        if entries.is_empty() {
            return;
        }
        let now = self.ports.clock.boot();
        self.gather(id, |engine| {
            for entry in entries {
                engine.fold_entry(id, run, entry, now);
            }
        });
        if let Some(newest) = entries.last() {
            let lag = self.ports.clock.wall().0.saturating_sub(newest.at.0);
            self.metrics.fold.took(Duration::from_millis(u64::try_from(lag).unwrap_or(0)));
        }
        if self.taping(id).is_some_and(|taping| taping.is_full()) {
            self.store_fold(id);
        }
        if self.taping(id).is_some_and(|taping| taping.changed.is_some()) {
            self.sweep_soon(id, now);
        }
    }

    fn fold_entry(&mut self, id: SessionId, run: RunNumber, entry: &Taped, now: Boot) {
        let Some(taping) = self.taping_of(id, run) else { return };
        if entry.run != run {
            return;
        }
        let mut told = Vec::new();
        if entry.lost > 0 && taping.fold.to() > 0 && entry.position >= taping.fold.to() {
            let gap =
                Taped { end: entry.position, what: EntryKind::Gap { lost: entry.lost }, ..entry.clone() };
            told.extend(taping.fold.entry(&gap.entry()));
        }
        let new = entry.position >= taping.fold.to();
        told.extend(taping.fold.entry(&entry.entry()));
        taping.changed.get_or_insert(now);
        if let (true, EntryKind::Out | EntryKind::Err) = (new, &entry.what) {
            taping.printed(&entry.bytes, entry.at);
        }
        if let EntryKind::Said { number, label } = &entry.what {
            taping.was_said(*number, label);
            if new {
                self.word_told(id, run, label);
            }
        }
        self.learn_all(id, run, told);
    }

    fn learn_all(&mut self, id: SessionId, run: RunNumber, told: Vec<Observation>) {
        for observation in told {
            self.learn(id, run, observation);
        }
    }

    /// Runs `decide` and commits everything it decides for a session together with its cursor.
    pub(super) fn gather(&mut self, id: SessionId, decide: impl FnOnce(&mut Engine)) {
        if self.gathered.is_some() {
            return decide(self);
        }
        self.gathered = Some(GatheredBatch::of(id));
        decide(self);
        let Some(GatheredBatch { mut batch, joined, .. }) = self.gathered.take() else { return };
        if !joined {
            if !batch.is_empty() {
                self.commit(None, batch);
            }
            return;
        }
        let noted = self.note_cursor(id, &mut batch);
        if let Some(tracked) = self.sessions.get_mut(&id)
            && let Some(first) =
                tracked.pending.iter_mut().rev().find(|pending| !pending.durable && !pending.joined)
        {
            first.noted = noted;
        }
        self.commit(Some(id), batch);
    }

    /// Adds to a batch how far the tape of its session is folded, if that has changed.
    pub(super) fn note_cursor(&mut self, id: SessionId, batch: &mut Batch) -> Option<NotedCursor> {
        let tracked = self.sessions.get_mut(&id)?;
        if let Some((cursor, noted)) = tracked.parting.take() {
            batch.cursor(cursor);
            return Some(noted);
        }
        let floor = tracked.floor;
        let taping = tracked.run.as_mut()?.taping.as_deref_mut().filter(|taping| taping.changed.is_some())?;
        let (cursor, noted) = taping.cursor(id, floor);
        batch.cursor(cursor);
        batch.answer_parts(taping.parts.drain(..));
        Some(noted)
    }

    /// Stores how far the tape of a session is folded, on its own: something is about to be written because
    /// of it.
    pub(super) fn store_fold(&mut self, id: SessionId) {
        let mut batch = Batch::new();
        let Some(noted) = self.note_cursor(id, &mut batch) else { return };
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if std::mem::take(&mut tracked.reloaded) {
            batch.reloaded(id);
        }
        let pending = Pending::of_cursor(tracked.snapshot(), noted);
        tracked.pending.push_back(pending);
        self.commit(Some(id), batch);
    }

    /// A cursor is durable: what is before it need not be kept.
    pub(super) fn heard(&mut self, id: SessionId, noted: NotedCursor) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.floor = tracked.floor.max(noted.to);
        tracked.heard = noted.from;
        self.say_heard(id, noted.run);
    }

    /// Tells the shim which part of the tape need not be kept.
    fn say_heard(&self, id: SessionId, run: RunNumber) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        if let Some(shim) = tracked.shim.as_ref().filter(|shim| shim.can.tape) {
            shim.send(&Command::Heard { run, to: Position(tracked.heard) });
            crash::point("heard.sent");
        }
    }

    fn sweep_soon(&mut self, id: SessionId, now: Boot) {
        self.unswept.insert(id);
        if self.sweep_at.is_none() {
            self.sweep_at = Some(now + SWEEP);
            self.wake_for_sweep();
        }
    }

    /// Stores all cursors that are far behind, in one batch.
    pub(super) fn sweep(&mut self, now: Boot) {
        if self.sweep_at.is_none_or(|at| at > now) {
            return;
        }
        let (mut batch, mut all) = (Batch::new(), Vec::new());
        for id in std::mem::take(&mut self.unswept) {
            let Some(tracked) = self.sessions.get(&id) else { continue };
            let taping = tracked.run.as_ref().and_then(|run| run.taping.as_deref());
            let Some(taping) = taping.filter(|taping| taping.changed.is_some()) else { continue };
            // What was heard before is still being committed: that goes first.
            if tracked.reloaded
                || tracked.pending.iter().any(|pending| !pending.durable)
                || !taping.is_behind(now)
            {
                self.unswept.insert(id);
                continue;
            }
            let beginnings = tracked.beginnings;
            all.extend(self.note_cursor(id, &mut batch).map(|noted| Swept { id, beginnings, noted }));
        }
        self.sweep_at = (!self.unswept.is_empty()).then_some(now + SWEEP);
        if !all.is_empty() {
            let (handle, metrics, begun) = (self.handle.clone(), Arc::clone(&self.metrics), Instant::now());
            let told = move |outcome| {
                metrics.commit.took(begun.elapsed());
                handle.tell(LoopInput::Swept { all, outcome });
            };
            self.ports.journal.commit(batch, None, Box::new(told));
        }
    }

    pub(super) fn swept(&mut self, all: Vec<Swept>, outcome: Outcome) {
        let (now, stored) = (self.ports.clock.boot(), outcome.is_ok());
        for Swept { id, beginnings, noted } in all {
            let same = self.sessions.get(&id).is_some_and(|tracked| tracked.beginnings == beginnings);
            if stored && same {
                self.heard(id, noted);
            } else if let Some(taping) = self.taping_of(id, noted.run).filter(|_| same) {
                taping.changed.get_or_insert(now);
                self.sweep_soon(id, now);
            }
        }
        self.committed(None, outcome);
    }

    /// Defers an end until the rest of the tape has been folded; returns whether that is needed.
    pub(super) fn ends_later(&mut self, id: SessionId, run: RunNumber, end: Judgement) -> bool {
        let Some(taping) = self.taping_of(id, run) else { return false };
        taping.end = Some(end);
        self.read_on(id);
        true
    }

    /// Defers what recovery found of a session until the tape has been folded; returns it if that is not
    /// needed.
    pub(super) fn seen_later(&mut self, id: SessionId, seen: Box<SessionSeen>) -> Option<Box<SessionSeen>> {
        match self.taping(id) {
            None => Some(seen),
            Some(taping) => {
                taping.seen = Some(seen);
                self.read_on(id);
                None
            }
        }
    }

    /// Judges a deferred end once the fold has reached the end of the tape: the present one, or the one the
    /// end names.
    fn judge(&mut self, id: SessionId, at_end: bool) {
        let Some(taping) = self.taping(id) else { return };
        let (run, to) = (taping.fold.run(), taping.fold.to());
        let reached = |exited: &Exited| exited.tape.is_some_and(|tape| to >= tape.end.0);
        let due = match &taping.end {
            Some(Judgement::Exited { exited, .. }) => at_end || reached(exited),
            Some(Judgement::Lost) => at_end,
            None => false,
        };
        if due && let Some(end) = taping.end.take() {
            return self.judge_end(id, run, end);
        }
        if at_end && let Some(seen) = self.taping(id).and_then(|taping| taping.seen.take()) {
            self.judge_seen(id, run, seen);
        }
    }

    fn judge_end(&mut self, id: SessionId, run: RunNumber, end: Judgement) {
        match end {
            Judgement::Exited { exited, shim } => {
                let read = self.fold_exit(id, run, exited.tape, exited.ended.exit);
                self.ended(id, &exited, shim, read);
            }
            Judgement::Lost => {
                let read = self.fold_exit(id, run, None, Exit::ShimLost);
                self.lost_without_record(id, run, read);
            }
        }
    }

    fn judge_seen(&mut self, id: SessionId, run: RunNumber, mut seen: Box<SessionSeen>) {
        let welcome = seen.shim.as_ref().map(|up| &up.welcome);
        let standing = welcome.and_then(|welcome| welcome.tape).filter(|tape| tape.run == run);
        let first = self.taping(id).map(|taping| std::mem::take(&mut taping.first)).unwrap_or_default();
        self.gather(id, |engine| engine.learn_all(id, run, first));
        if let Some(standing) = standing {
            self.note_written(id, run, standing.said.written.0);
        }
        if let Some((_, ended)) = seen.world.exits.iter_mut().find(|(ended, _)| *ended == run) {
            let read = self.fold_exit(id, run, None, ended.exit);
            ended.recognised = ended.recognised.or(self.gave_up(id, run));
            // A tape that lost its last part in a power failure does not show what was written there.
            ended.read = if seen.world.machine == Machine::Same { read } else { Read::Maybe };
        }
        self.observed_now(id, *seen);
        if let (Some(standing), Some(taping)) = (standing, self.taping_of(id, run)) {
            taping.flow = standing.flow;
        }
        self.tell_activity(id, run);
        self.speak(id);
    }

    /// Tells the fold that its run has ended; returns whether the message of its turn may have been read.
    fn fold_exit(&mut self, id: SessionId, run: RunNumber, tape: Option<TapeEnd>, exit: Exit) -> Read {
        if let Some(tape) = tape {
            self.note_written(id, run, tape.said.written.0);
        }
        self.was_for_message(id, run, exit);
        let by = self.sessions.get(&id).map_or(EndedBy::Us, |tracked| ended_by(tracked));
        let Some(taping) = self.taping_of(id, run) else { return Read::Maybe };
        let told = taping.fold.exited(exit, by);
        self.gather(id, |engine| engine.learn_all(id, run, told));
        let Some(tracked) = self.sessions.get_mut(&id) else { return Read::Maybe };
        let floor = tracked.floor;
        let turn = tracked.session.inbox().in_flight();
        let Some(taping) = tracked.run.as_mut().and_then(|run| run.taping.as_deref_mut()) else {
            return Read::Maybe;
        };
        let said = |delivery: u64| taping.fold.open().any(|(open, _)| open.delivery == delivery);
        let whole = tape.is_none_or(|tape| taping.fold.to() >= tape.end.0) && !taping.fold.is_unknown();
        let never = turn.is_some_and(|turn| !said(turn.delivery)) && whole;
        if taping.changed.is_some() {
            // It goes with the end, which removes the fold.
            tracked.parting = Some(taping.cursor(id, floor));
        }
        if never { Read::Never } else { Read::Maybe }
    }

    /// A shim has said welcome: it treats nothing as heard unless told.
    pub(super) fn tell_heard(&self, id: SessionId) {
        if let Some(tracked) = self.sessions.get(&id) {
            self.say_heard(id, tracked.session.runs().last);
        }
    }

    /// The run or its shim has ended: its tape is not read any more.
    pub(super) fn forget_tape(&self, id: SessionId) {
        self.ports.tapes.forget(id);
    }

    /// How many live runs have a tape.
    pub(super) fn tapes(&self) -> u64 {
        let has = |tracked: &Tracked| tracked.run.as_ref().is_some_and(|run| run.taping.is_some());
        self.sessions.values().filter(|tracked| has(tracked)).count() as u64
    }

    /// Judges the end of a run with a tape whose end was not recorded.
    pub(super) fn lost_later(&mut self, id: SessionId, run: RunNumber) -> bool {
        self.ends_later(id, run, Judgement::Lost)
    }

    /// Judges the end of a run with a tape whose end the shim recorded.
    pub(super) fn exited_later(&mut self, id: SessionId, exited: &Exited, shim: Shim) -> bool {
        self.ends_later(id, exited.run, Judgement::Exited { exited: Box::new(exited.clone()), shim })
    }
}

/// Whether the live run ends by itself or because of us.
fn ended_by(tracked: &Tracked) -> EndedBy {
    let stopping = matches!(tracked.session.life(), Life::Stopping { .. });
    if stopping || tracked.session.is_interrupted() { EndedBy::Us } else { EndedBy::Itself }
}

/// The set-up with which a run of a session starts.
fn setup(tracked: &Tracked, config: &Config) -> Setup {
    let definition = &tracked.definition;
    let preset = config.preset(&definition.agent);
    let vendor_session = tracked.session.talk().conversation(definition.vendor_session.as_deref());
    let per_message = definition.protocol == Protocol::Exec;
    Setup {
        protocol: definition.protocol,
        input: definition.input,
        turns: definition.turns,
        exec: definition.exec.as_deref().cloned().unwrap_or_default(),
        contended_if: definition.contended_if.clone(),
        thread: definition.thread.clone(),
        dir: definition.dir.display().to_string(),
        vendor_session: vendor_session.map(str::to_owned),
        only_resumes: only_resumes(tracked),
        vendor_id: preset.as_ref().map(|preset| preset.vendor_id).unwrap_or_default(),
        chat: preset.map(|preset| preset.chat).unwrap_or_default(),
        prompted: tracked.session.inbox().next_waiting().filter(|_| per_message),
    }
}
