//! A run with a tape: what it prints, what is said to it, and what its daemon is told of both.

use super::run::Run;
use super::shim::{Phase, Shim, wall};
use super::taping::{Due, Taping};
use crate::files::log::Position;
use crate::files::tape::{SegmentLimits, Tape};
use crate::protocol::report::Report;
use crate::protocol::say::{Say, SayNumber, SayRefused};
use crate::protocol::start::Start;
use crate::protocol::tape::{TapeEnd, TapeReport, TapeStanding};
use pinfold_core::ids::RunNumber;
use rustix::io::Errno;
use std::time::Instant;

impl Shim {
    /// Opens the tape for a run that is to have one; returns how many bytes of it may be unheard.
    pub(super) fn ready_tape(&mut self, start: &Start) -> Result<Option<u64>, Errno> {
        let plain = start.terminal.is_none() && self.streams.is_none();
        let Some(limits) = start.tape.filter(|_| plain) else { return Ok(None) };
        let kept_bytes = start.log.file_bytes.saturating_mul(start.log.files.into());
        let tape = self.open_tape()?;
        tape.limit(SegmentLimits { kept_bytes, ..SegmentLimits::default() });
        tape.go_on_from(limits.floor)?;
        Ok(Some(limits.unheard))
    }

    fn open_tape(&mut self) -> Result<&mut Tape, Errno> {
        let folder = self.keep.tape.as_ref().ok_or(Errno::INVAL)?;
        let open = match self.tape.take() {
            Some(open) => open,
            None => Box::new(Tape::open(folder, SegmentLimits::default())?),
        };
        Ok(self.tape.insert(open))
    }

    /// Returns the run's use of the tape, if it has one.
    fn taping(&mut self) -> Option<(&mut Taping, &mut Tape, Due)> {
        let Phase::Running(run) = &mut self.phase else { return None };
        let due = run.tape_due();
        Some((run.taping.as_deref_mut()?, self.tape.as_deref_mut()?, due))
    }

    /// Returns whether the pipes of a run are read now.
    pub(super) fn reads(&self, run: &Run) -> bool {
        match (&run.taping, &self.tape) {
            (Some(taping), Some(tape)) => taping.is_read(tape, run.tape_due()),
            _ => true,
        }
    }

    /// Returns the state of the run's tape.
    pub(super) fn tape_standing(&self) -> Option<TapeStanding> {
        let Phase::Running(run) = &self.phase else { return None };
        Some(run.taping.as_ref()?.standing(self.tape.as_deref()?))
    }

    /// Reads what a run with a tape printed; the buffer is empty afterwards if there was nothing.
    pub(super) fn tape_output(&mut self, number: usize) {
        let (Phase::Running(run), Some(tape)) = (&mut self.phase, &mut self.tape) else { return };
        let due = run.tape_due();
        let Some(taping) = run.taping.as_mut().filter(|taping| taping.is_read(tape, due)) else { return };
        if let Some(stream) = run.outputs.read(number, &mut self.buffer) {
            taping.hear(tape, due, stream, &self.buffer, wall());
        }
    }

    /// Says a word to the agent, if it is the next one.
    pub(super) fn say(&mut self, say: Say) {
        let (run, number) = (say.run, say.number);
        self.settle_soon();
        // Earlier output is on the tape first, even if it was not read yet.
        self.catch_up();
        let Some((taping, tape, _)) = self.taping() else { return self.refuse(run, number) };
        let next = taping.words.is_next(number);
        let said = if next { taping.say(tape, say, wall()) } else { Ok(()) };
        let up_to = taping.words.up_to();
        self.links.report(&Report::Tape(match said {
            Ok(()) => TapeReport::Said { run, said: up_to },
            Err(why) => TapeReport::Refused { run, number, why },
        }));
    }

    /// A run without a tape takes no numbered words.
    fn refuse(&mut self, run: RunNumber, number: SayNumber) {
        let why = SayRefused::Closed;
        self.links.report(&Report::Tape(TapeReport::Refused { run, number, why }));
    }

    /// Continues writing to the agent, or closes its input afterwards.
    pub(super) fn with_words(&mut self, what: impl FnOnce(&mut Taping) -> bool) {
        let Phase::Running(run) = &mut self.phase else { return };
        let number = run.number;
        let Some(taping) = &mut run.taping else { return };
        if what(taping) {
            let said = taping.words.up_to();
            self.links.report(&Report::Tape(TapeReport::Said { run: number, said }));
        }
    }

    /// Notes that the daemon no longer needs the tape below a position.
    pub(super) fn heard(&mut self, to: Position) {
        // It may come before the first run of this shim.
        if self.keep.tape.is_some()
            && let Ok(tape) = self.open_tape()
        {
            tape.heard(to);
        }
    }

    /// Retries failed writes, and reports whether the agent waits and how far the tape has grown.
    pub(super) fn tend_tape(&mut self) {
        let Some((taping, tape, due)) = self.taping() else { return };
        taping.retry(tape, due, Instant::now(), wall());
        let (flow, end) = (taping.new_flow(tape), tape.end());
        let Phase::Running(run) = &self.phase else { return };
        if let Some(flow) = flow {
            self.links.report(&Report::Tape(TapeReport::State { run: run.number, flow }));
        }
        if let Some(daemon) = &mut self.links.daemon {
            daemon.grown(run.number, end);
        }
    }

    /// The tree is gone: reads its last output, and ends its part of the tape.
    pub(super) fn end_tape(&mut self, run: &mut Run) -> Option<TapeEnd> {
        let (taping, tape) = (run.taping.as_deref_mut()?, self.tape.as_deref_mut()?);
        taping.retry(tape, Due::Last, Instant::now(), wall());
        run.outputs.drain(&mut self.buffer, &mut |stream, bytes| {
            taping.hear(tape, Due::Last, stream, bytes, wall());
        });
        let end = taping.end(tape, wall());
        // Clients that wait for a terminal wait in vain.
        self.viewers.end(None);
        Some(end)
    }

    /// Syncs the tape, before a record of an end is synced that is stored nowhere else.
    pub(super) fn sync_tape(&mut self) {
        if let Some(tape) = &mut self.tape {
            // If the disk fails now, that costs a repetition, as a power cut would.
            let _ = tape.sync();
        }
    }
}

impl Run {
    /// Returns what limits the tape now.
    fn tape_due(&self) -> Due {
        if self.is_being_ended() { Due::Ending } else { Due::Heard }
    }

    /// Writes the run's output to the tape, and takes numbered words for its input.
    pub(super) fn with_tape(mut self, unheard: Option<u64>) -> Self {
        self.taping = unheard.map(|bound| {
            let pipe = self.input.give_pipe();
            Box::new(Taping::new(self.number, bound, pipe))
        });
        self
    }
}
