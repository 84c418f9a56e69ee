//! The end of a run and of the shim: in order, and recorded before it is reported.

use super::guests::see_off;
use super::run::{Run, RunStage};
use super::shape::ChildShape;
use super::shim::{Phase, Shim, hear, hear_end, mirror, wall};
use super::start;
use crate::crash;
use crate::groups::group::Group;
use crate::protocol::exited::Exited;
use crate::protocol::report::Report;
use crate::protocol::tape::TapeEnd;
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::inbox::Read;
use pinfold_lock::Guard;
use rustix::event::{PollFd, PollFlags};
use std::time::{Duration, Instant};

/// If the daemon has not stored an end within this time, the shim syncs its record.
const STORED: Duration = Duration::from_millis(20);
/// A daemon that does not read gets this long for the last reports.
const LAST_WORDS: Duration = Duration::from_millis(100);

impl Shim {
    /// The tree is empty: reads its last output, and records how it ended.
    pub(super) fn finish(&mut self) {
        let Phase::Running(mut run) = std::mem::replace(&mut self.phase, Phase::Gone) else { return };
        crash::point("end.empty");
        let number = run.number;
        see_off(&mut run, &mut self.viewers, &mut self.links, &mut self.buffer);
        let tape = if run.taping.is_some() { self.end_tape(&mut run) } else { self.end_log(&mut run) };
        self.buffer = Vec::new();
        self.notify.drain(Some(&run));
        // A tape tells of its own messages.
        let read = if tape.is_some() { Read::Maybe } else { run.input.read() };
        for report in run.input.shut() {
            self.links.report(&report);
        }
        for report in self.notify.untold(number) {
            self.links.report(&report);
        }
        if let Some(why) = run.failure {
            return self.start_failed(number, why);
        }
        let next = run.next.filter(|_| run.stopping.is_none());
        let exited = self.exited(&run, tape, read);
        self.tell_end(exited, std::mem::take(&mut run.held));
        let group = run.group.take().and_then(Group::again);
        drop(run);
        self.go_on(next, group);
    }

    /// Reads the last output of a run without a tape.
    fn end_log(&mut self, run: &mut Run) -> Option<TapeEnd> {
        let number = run.number;
        let (log, links, viewers) = (&mut self.log, &mut self.links, &mut self.viewers);
        let mut pty = run.pty.take();
        log.printed_on(pty.as_ref().map(|pty| pty.screen.size()));
        let Run { outputs, turns, .. } = run;
        outputs.drain(&mut self.buffer, &mut |stream, bytes| {
            if let Some(pty) = &mut pty {
                mirror(pty, viewers, bytes);
            }
            hear(log, links, turns, number, stream, bytes);
        });
        hear_end(log, links, turns, number);
        self.viewers.end(pty.as_deref());
        self.log.settle();
        None
    }

    fn exited(&self, run: &Run, tape: Option<TapeEnd>, read: Read) -> Exited {
        let exit = match run.stage {
            RunStage::Ending(exit) => exit,
            RunStage::Starting(_) | RunStage::Running => Exit::NeverStarted,
        };
        Exited {
            run: run.number,
            ended: Ended {
                exit,
                said: self.notify.said(),
                recognised: None,
                oom_killed: run.group.as_ref().is_some_and(Group::ran_out_of_memory),
                forced: run.stopping.is_some_and(|stopping| stopping.forced),
                lived: run.lived,
                read,
                at: None,
                last_line: None,
            },
            failure: None,
            pid: run.process.pid,
            fence: run.process.fence,
            at: wall(),
            log: self.log.end(),
            tape,
        }
    }

    /// Records an end, then reports it: from now on no kill can lose it. The daemon puts it on disk, or the
    /// shim does. Locks that were held only for the run are free before it is reported.
    pub(super) fn tell_end(&mut self, exited: Exited, held: Vec<Guard>) {
        if exited.tape.is_some() && !self.links.has_daemon() {
            self.sync_tape();
        }
        // A failing disk must not keep the daemon, which has its own, from knowing.
        let _ = self.records.append(&exited);
        self.links.report(&start::told(exited));
        // The report is queued, and not sent before they are free.
        self.let_go(held);
        if let Some(daemon) = &mut self.links.daemon {
            daemon.flush(self.log.end());
        }
        // The daemon was woken on this processor, and has more to do than we have.
        rustix::thread::sched_yield();
        crash::point("end.reported");
        self.unstored = Some(Instant::now() + STORED);
    }

    /// Puts an end on disk that the daemon has not stored: it is slow, or gone, or something else must happen
    /// first.
    pub(super) fn store_end(&mut self) {
        self.unstored = None;
        if self.records.is_unsynced() {
            self.sync_tape();
        }
        // What cannot be put on disk now is still in the page cache, which outlives us.
        let _ = self.records.sync();
    }

    /// Waits for the next command, or leaves.
    pub(super) fn go_on(&mut self, next: Option<ChildShape>, group: Option<Group>) {
        self.drop_closed();
        if self.last || !self.links.has_daemon() {
            // The session's next shim makes one with the same name.
            drop(group);
            return self.leave();
        }
        self.stand();
        if let Some(shape) = next {
            self.prepare(shape, group);
        }
    }

    /// Gives everything back, in order, and says so. Nothing of the tree is alive.
    pub(super) fn leave(&mut self) {
        self.phase = Phase::Gone;
        self.store_end();
        self.drop_spare();
        self.viewers.end(None);
        crash::point("leave.unmarked");
        if let Some(listener) = &self.links.listener {
            // Before the lock is free: afterwards the path belongs to the next shim.
            listener.remove();
        }
        if let Some(scratch) = self.keep.scratch.as_ref().filter(|_| !self.links.has_parent()) {
            // Its owner was killed, and cannot remove it.
            let _ = std::fs::remove_dir_all(scratch);
        }
        for guard in &mut self.guards {
            // Without the mark the next holder looks for survivors, and finds none.
            let _ = guard.mark_released();
        }
        crash::point("leave.marked");
        self.guards.clear();
        crash::point("leave.closed");
        self.links.report(&Report::Leaving);
        self.say_last_words();
    }

    fn say_last_words(&mut self) {
        let until = Instant::now() + LAST_WORDS;
        while let Some(daemon) = &mut self.links.daemon {
            daemon.flush(self.log.end());
            let left = until.saturating_duration_since(Instant::now());
            if daemon.is_closed() || !daemon.has_queued() || left.is_zero() {
                return;
            }
            let timeout = pinfold_kernel::clock::timespec(left);
            let _ = rustix::event::poll(&mut [PollFd::new(daemon, PollFlags::OUT)], Some(&timeout));
        }
    }
}
