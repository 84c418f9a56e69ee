//! What the loop does while its store cannot be written, and what it reports about a damaged store.
//!
//! Nothing is acknowledged before it is recorded. What was decided waits; new requests are refused on
//! arrival, with the reason; a stop acts first and is recorded later.

use super::{Engine, WhyNot};
use crate::engine::feed::FeedNews;
use crate::engine::input::{LoopInput, Unrecorded};
use crate::engine::reply::ReplyHandle;
use crate::engine::session::Deeds;
use crate::ports::stops::{NotedStop, StopWish};
use pinfold_core::decision::Answer;
use pinfold_core::event::Ask;
use pinfold_core::life::Life;
use pinfold_core::{Action, Event, EventKind};
use pinfold_store::{Batch, Facts, SessionId, Store, Trouble, Ulid};
use std::sync::Arc;
use tracing::{error, warn};

/// The state of the store, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    trouble: Trouble,
    /// What a check of all pages and checksums found.
    findings: Vec<String>,
}

impl StoreHealth {
    /// Whether nothing can be recorded at the moment.
    pub(crate) fn holds_up(&self) -> bool {
        self.trouble.holds_up()
    }

    /// What is wrong, in sentences.
    pub(crate) fn words(&self) -> Vec<String> {
        let trouble = Some(&self.trouble).filter(|trouble| **trouble != Trouble::None);
        trouble.map(ToString::to_string).into_iter().chain(self.findings.iter().cloned()).collect()
    }
}

impl Engine {
    /// Tells people and the loop what keeps the store from being written, or that nothing does any more.
    pub(super) fn troubled(&mut self, trouble: Trouble) {
        warn!("{trouble}");
        let recorded = !trouble.holds_up();
        self.handle.refuse((trouble != Trouble::None).then(|| WhyNot::Unrecordable(trouble.clone())));
        let before = std::mem::replace(&mut self.health.trouble, trouble);
        let words: Option<Arc<str>> =
            (self.health.trouble != Trouble::None).then(|| self.health.trouble.to_string().into());
        for tracked in self.sessions.values_mut() {
            tracked.held_up = words.clone();
            self.feed.note(tracked.id, FeedNews::Change);
            tracked.stops_first &= !recorded;
            if !recorded {
                // Clients that wait are told why instead of nothing; what was decided is recorded as soon as
                // possible.
                let waiting = tracked.pending.iter_mut().filter(|pending| !pending.durable);
                for (pending, reply) in
                    waiting.filter_map(|pending| Some((pending.answer.clone(), pending.reply.take()?)))
                {
                    reply.refuse(not_known(&self.health.trouble, pending.as_ref(), &tracked.name));
                }
            }
        }
        if recorded {
            let told = if self.health.trouble == Trouble::None { &before } else { &self.health.trouble };
            let over = self.health.trouble == Trouble::None;
            let (kind, why) = (kind(told), told.to_string());
            let why = if over { format!("over: {why}") } else { why };
            self.tell_of_store(kind, &why);
            self.take_audit();
        }
    }

    /// Notes what a check of the whole store found.
    pub(super) fn checked(&mut self, findings: Vec<String>) {
        for finding in findings.iter().filter(|finding| !self.health.findings.contains(finding)) {
            error!("{finding}");
            self.tell_of_store(EventKind::DatabaseDamaged, finding);
        }
        self.health.findings = findings;
    }

    pub(crate) fn tell_of_store(&self, kind: EventKind, why: &str) {
        let mut batch = Batch::new();
        batch.event(self.daemon_event(kind, why));
        self.commit(None, batch);
    }

    /// Refuses what cannot be recorded now: dropping it answers with the reason.
    pub(super) fn at_the_door(&self, input: LoopInput) -> Option<LoopInput> {
        let refused = match &input {
            LoopInput::Post { .. } | LoopInput::Create(_) => self.health.trouble != Trouble::None,
            LoopInput::Define { .. } => self.holds_up(),
            LoopInput::Happened { event, reply, .. } => reply.is_some() && self.holds_up() && !is_stop(event),
            LoopInput::Command(command) => command.is_recorded() && self.holds_up(),
            LoopInput::Look(_)
            | LoopInput::FilesDeleted { .. }
            | LoopInput::Forgotten(_)
            | LoopInput::FolderMade { .. }
            | LoopInput::StopNoted { .. }
            | LoopInput::Committed { .. }
            | LoopInput::Reserved { .. }
            | LoopInput::ShimUp { .. }
            | LoopInput::Shim { .. }
            | LoopInput::ShimGone { .. }
            | LoopInput::Tape { .. }
            | LoopInput::Swept { .. }
            | LoopInput::VendorHeld { .. }
            | LoopInput::Looked { .. }
            | LoopInput::HolderGone { .. }
            | LoopInput::Attaching { .. }
            | LoopInput::Observed { .. }
            | LoopInput::Memory { .. }
            | LoopInput::Filed { .. }
            | LoopInput::Reload
            | LoopInput::ConfigRead(_)
            | LoopInput::Ping { .. }
            | LoopInput::Moved { .. }
            | LoopInput::StopOverdue { .. }
            | LoopInput::DownOverdue { .. }
            | LoopInput::HolderEnded { .. }
            | LoopInput::Kept { .. }
            | LoopInput::WriterSeen { .. }
            | LoopInput::FilesSeen { .. }
            | LoopInput::Audited
            | LoopInput::AuditStored { .. }
            | LoopInput::StrangersSought(_)
            | LoopInput::StrangerEnded { .. }
            | LoopInput::Trouble(_)
            | LoopInput::Checked(_)
            | LoopInput::Note { .. }
            | LoopInput::Down { .. } => false,
        };
        // Another program that writes is done in a moment: that is waited for.
        (!refused || self.health.trouble == Trouble::Busy).then_some(input)
    }

    /// The store, for a separate connection; `None` while its file has lost its name.
    pub(super) fn readable(&self) -> Option<Store> {
        if let Trouble::Gone { .. } = self.health.trouble { None } else { Some(self.store.clone()) }
    }

    /// Refuses what cannot be recorded now, for requests that do not pass `at_the_door`.
    pub(super) fn can_record(&self) -> Result<(), WhyNot> {
        if self.holds_up() { Err(WhyNot::Unrecordable(self.health.trouble.clone())) } else { Ok(()) }
    }

    fn holds_up(&self) -> bool {
        self.health.holds_up()
    }

    /// Something happened to a session. A stop that cannot be recorded is first noted in a file, if there is
    /// room, and then carried out.
    pub(super) fn happened_now(
        &mut self,
        id: SessionId,
        event: Box<Event>,
        facts: Box<Facts>,
        reply: Option<ReplyHandle>,
    ) {
        let Some(wish) = wish(&event).filter(|_| self.holds_up()) else {
            return self.happened(id, &event, &facts, reply);
        };
        let Some(tracked) = self.sessions.get(&id) else { return };
        let noted = NotedStop { session: id, wish, run: tracked.session.runs().last };
        let stop = Box::new(Unrecorded { event: *event, facts: *facts, reply });
        let handle = self.handle.clone();
        let told = move |noted| handle.tell(LoopInput::StopNoted { id, noted, stop });
        self.ports.files.note_stop(noted, Box::new(told));
    }

    /// Carries out a stop that was noted. If the disk has room again, it is recorded like anything else.
    pub(super) fn stop_noted(&mut self, id: SessionId, noted: std::io::Result<()>, stop: Box<Unrecorded>) {
        if let Some(early) = self.early(id) {
            return early.push(LoopInput::StopNoted { id, noted, stop });
        }
        let holds_up = self.holds_up();
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        tracked.stops_first |= holds_up;
        match noted {
            Ok(()) => tracked.stop_noted = true,
            Err(error) => {
                warn!(session = tracked.name, "its stop is forgotten with this daemon: {error}");
            }
        }
        self.happened(id, &stop.event, &stop.facts, stop.reply);
    }

    /// Takes up the stops that were carried out but not recorded: each run that was the last one then must
    /// end, or has ended.
    pub(crate) fn stop_as_noted(&mut self) {
        let left = match self.ports.files.open_stops(self.home.stops()) {
            Ok(left) => left,
            Err(error) => return warn!("stops on a full disk will be forgotten: {error}"),
        };
        for NotedStop { session, wish, run } in left {
            let known = self.sessions.get_mut(&session).filter(|tracked| tracked.session.runs().last <= run);
            let Some(tracked) = known else {
                self.ports.files.settle_stop(session);
                continue;
            };
            tracked.stop_noted = true;
            let event = match wish {
                StopWish::Stop => Event::Asked(Ask::Stop { grace: None }),
                StopWish::Down => Event::DownAsked,
            };
            let why = Some("it was stopped while nothing could be recorded".to_owned());
            self.happened(session, &event, &Facts { why, ..Facts::default() }, None);
        }
    }

    /// Carries out now what ends a run of a session that stops first; everything else waits for its record.
    pub(super) fn act_first(
        &mut self,
        id: SessionId,
        deeds: &mut Deeds,
        answer: Option<&Answer>,
        reply: Option<ReplyHandle>,
    ) -> Option<ReplyHandle> {
        let stops_first = self.sessions.get(&id).is_some_and(|tracked| tracked.stops_first);
        if !stops_first || !self.holds_up() {
            return reply;
        }
        let (first, later): (Vec<_>, Vec<_>) = deeds.actions.drain(..).partition(ends_something);
        deeds.actions = later;
        first.iter().for_each(|action| self.perform(id, action));
        self.stop_without_words(id);
        if let Some(tracked) = self.sessions.get(&id) {
            self.feed.publish(id, &tracked.seen, tracked.snapshot(), FeedNews::Change);
        }
        self.tell_attaching(id);
        if let Some(reply) = reply {
            reply.give(answer.cloned().unwrap_or(Answer::Done));
        }
        None
    }
}

impl Engine {
    /// Nothing is written to an agent before its cause is recorded, so an agent that would be asked to leave
    /// is signalled instead.
    fn stop_without_words(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id) else { return };
        let (life, grace) = (tracked.session.life(), tracked.session.spec().policy.stop_grace);
        if let (Life::Stopping { run, .. }, true) = (life, tracked.session.is_leaving()) {
            self.perform(id, &Action::Stop { run: *run, grace });
        }
    }
}

fn is_stop(event: &Event) -> bool {
    wish(event).is_some()
}

fn wish(event: &Event) -> Option<StopWish> {
    if *event == Event::DownAsked {
        return Some(StopWish::Down);
    }
    matches!(event, Event::Asked(Ask::Stop { .. })).then_some(StopWish::Stop)
}

fn ends_something(action: &Action) -> bool {
    match action {
        Action::Stop { .. } | Action::Release | Action::ForgetHolder => true,
        Action::Reserve { .. }
        | Action::Spawn { .. }
        | Action::AwaitHolder
        | Action::LookAgain
        | Action::Deliver { .. }
        | Action::Interrupt { .. }
        | Action::Close { .. }
        | Action::Answer { .. }
        | Action::HoldVendor { .. }
        | Action::StartGuest { .. }
        | Action::ConfirmMemory { .. } => false,
    }
}

/// The answer to a client whose request was being committed: it may still take effect.
fn not_known(trouble: &Trouble, answer: Option<&Answer>, session: &str) -> WhyNot {
    let what = match answer {
        Some(Answer::Queued { message, .. }) => format!("message {} for `{session}`", Ulid::from(*message)),
        Some(Answer::UnderWay | Answer::Done | Answer::Already | Answer::Joined | Answer::Refused(_))
        | None => format!("what was asked of `{session}`"),
    };
    WhyNot::PerhapsRecorded { trouble: trouble.clone(), what }
}

fn kind(trouble: &Trouble) -> EventKind {
    match trouble {
        Trouble::None => EventKind::DatabaseWell,
        Trouble::Busy => EventKind::DatabaseBusy,
        Trouble::Reserve | Trouble::Full => EventKind::DiskFull,
        Trouble::Gone { .. } => EventKind::DatabaseGone,
        Trouble::Failed { .. } => EventKind::DatabaseFailed,
        Trouble::Damaged { .. } => EventKind::DatabaseDamaged,
        Trouble::Ended => EventKind::DatabaseEnded,
    }
}
