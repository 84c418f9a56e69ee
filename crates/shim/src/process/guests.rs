//! Starts, shows and ends the guest of a run.

use super::child::Child;
use super::daemons::Links;
use super::gate::{ShimSide, end, open_gate, pipe};
use super::guest::{LiveGuest, Visit};
use super::output::Outputs;
use super::run::Run;
use super::shape::ChildShape;
use super::shim::{Phase, Shim, mirror};
use super::start::{check, refused};
use super::usher;
use super::viewer::Viewers;
use crate::crash;
use crate::groups::group::Group;
use crate::protocol::exited::StartFailure;
use crate::protocol::guest::{self as frame, GuestReport};
use crate::protocol::report::Report;
use crate::protocol::start::{Contain, Start, Stdin};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use rustix::io::Errno;
use std::time::{Duration, Instant};

impl Shim {
    /// Starts a guest, once for each number.
    pub(super) fn start_guest(&mut self, guest: frame::GuestStart) {
        let (run, number) = (guest.run, guest.number);
        let Phase::Running(present) = &self.phase else { return self.tell_of(run) };
        if present.number != run {
            return self.tell_of(run);
        }
        match answer(present, number) {
            Answer::Start => {}
            Answer::Wait => return,
            Answer::Say(report) => return self.links.report(&Report::Guest(report)),
        }
        let visit = match self.try_guest(guest) {
            Ok(guest) => Visit::Here(Box::new(guest)),
            Err(why) => {
                let exit = Exit::NeverStarted;
                let ended = GuestReport::Ended { run, guest: number, exit, why: Some(why) };
                self.links.report(&Report::Guest(ended));
                Visit::Gone { number, exit }
            }
        };
        if let Phase::Running(run) = &mut self.phase {
            run.visit = Some(visit);
            let pty = run.visit.as_mut().and_then(Visit::here_mut).map(|guest| &mut *guest.pty);
            self.viewers.follow_typist(pty);
        }
    }

    fn try_guest(&mut self, guest: frame::GuestStart) -> Result<LiveGuest, StartFailure> {
        let number = guest.number;
        let start = guest.order();
        check(&start, self.locked_directory())?;
        self.links.listen(&self.keep).map_err(refused)?;
        let Phase::Running(run) = &self.phase else { return Err(refused(Errno::SRCH)) };
        let guest = self.fork_guest(run, number, &start).map_err(refused)?;
        self.links.joins = start.joins;
        crash::point("guest.released");
        Ok(guest)
    }

    fn fork_guest(&self, run: &Run, number: u64, start: &Start) -> Result<LiveGuest, Errno> {
        let shape = ChildShape { terminal: start.terminal, stdin: Stdin::Pipe, contain: Contain::Reaper };
        let (says, ushers) = pipe()?;
        let group = run.group.as_ref();
        let life = |child: &mut Child<'_>, outside: Option<&Group>| {
            // Its notifications would count as the agent's.
            child.notify = None;
            if let Some(group) = outside {
                group.take(std::process::id());
            }
            usher::live(child, &ushers)
        };
        let (usher, gate, ends) = self.fork_into(shape, group, &life)?;
        drop(ushers);
        let released = usher::hear_pid(&says).and_then(|pid| {
            if let Some(group) = group {
                let usher = usher.pid.as_raw_nonzero().get().unsigned_abs();
                group.count_memory_of(usher);
                group.count_memory_of(pid);
            }
            crash::point("guest.forked");
            open_gate(&gate, start, run.process.fence).map(|()| pid)
        });
        let ShimSide { failure, stdout, pty, .. } = ends;
        let (Ok(pid), Some(pty)) = (released, pty) else {
            end(&usher);
            return Err(released.err().unwrap_or(Errno::NOTTY));
        };
        Ok(LiveGuest {
            number,
            usher,
            pid,
            says,
            starting: Some(failure),
            failure: None,
            output: Outputs::new(stdout, None),
            pty,
            killing: None,
            announced: false,
            gone: false,
        })
    }

    /// Ends the guest of a run, and what it has started.
    pub(super) fn stop_guest(&mut self, run: RunNumber, number: u64, grace: Duration) {
        let Phase::Running(present) = &mut self.phase else { return self.tell_of(run) };
        if present.number != run {
            return self.tell_of(run);
        }
        match present.visit.as_mut().and_then(Visit::here_mut).filter(|guest| guest.number == number) {
            Some(guest) => guest.stop(grace, Instant::now()),
            None => {
                let ended = gone(present, number);
                self.links.report(&Report::Guest(ended));
            }
        }
    }

    pub(super) fn guest_standing(&self) -> Option<frame::GuestStanding> {
        if let Phase::Running(run) = &self.phase { run.visit.as_ref().map(Visit::standing) } else { None }
    }

    /// Reads what the guest has printed, and shows it.
    pub(super) fn read_guest(&mut self) {
        let Phase::Running(run) = &mut self.phase else { return };
        let Some(guest) = run.visit.as_mut().and_then(Visit::here_mut) else { return };
        if guest.output.read(0, &mut self.buffer).is_some() {
            guest.output.read_on(0, &mut self.buffer);
            mirror(&mut guest.pty, &mut self.viewers, &self.buffer);
            self.settle_soon();
        }
    }

    /// Reports that the guest runs, kills what is due, and reports when nothing of it is left.
    pub(super) fn tend_guest(&mut self, now: Instant) {
        let Phase::Running(run) = &mut self.phase else { return };
        let number = run.number;
        let Some(guest) = run.visit.as_mut().and_then(Visit::here_mut) else { return };
        guest.confirm();
        if guest.is_news() {
            guest.announced = true;
            crash::point("guest.confirmed");
            let (guest, pid) = (guest.number, guest.pid);
            self.links.report(&Report::Guest(GuestReport::Started { run: number, guest, pid }));
        }
        let Some(guest) = run.visit.as_mut().and_then(Visit::here_mut) else { return };
        guest.force(now);
        if guest.gone {
            see_off(run, &mut self.viewers, &mut self.links, &mut self.buffer);
            self.settle_soon();
        }
    }
}

impl Run {
    /// Returns the terminal that attached clients see: the run's own, or its guest's.
    pub(super) fn shown(&self) -> Option<&super::pty::Pty> {
        let guests = || self.visit.as_ref().and_then(Visit::here).map(|guest| &*guest.pty);
        self.pty.as_deref().or_else(guests)
    }

    pub(super) fn shown_mut(&mut self) -> Option<&mut super::pty::Pty> {
        let guests = self.visit.as_mut().and_then(Visit::here_mut).map(|guest| &mut *guest.pty);
        self.pty.as_deref_mut().or(guests)
    }
}

/// The guest and its tree have ended: shows its last output and reports its end.
pub(super) fn see_off(run: &mut Run, viewers: &mut Viewers, links: &mut Links, buffer: &mut Vec<u8>) {
    let Some(Visit::Here(mut guest)) = run.visit.take() else { return };
    guest.confirm();
    let LiveGuest { output, pty, .. } = &mut *guest;
    output.drain(buffer, &mut |_, bytes| mirror(pty, viewers, bytes));
    viewers.end(Some(pty));
    let (number, exit, why) = (guest.number, guest.exit(), guest.failure);
    crash::point("guest.ended");
    links.report(&Report::Guest(GuestReport::Ended { run: run.number, guest: number, exit, why }));
    run.visit = Some(Visit::Gone { number, exit });
}

/// What follows from an order to start a guest.
enum Answer {
    Start,
    /// It is being started, and that will be reported.
    Wait,
    Say(GuestReport),
}

fn answer(run: &Run, number: u64) -> Answer {
    let never = |why| {
        let exit = Exit::NeverStarted;
        Answer::Say(GuestReport::Ended { run: run.number, guest: number, exit, why: Some(why) })
    };
    match &run.visit {
        Some(Visit::Here(guest)) if guest.number == number && !guest.announced => Answer::Wait,
        Some(Visit::Here(guest)) if guest.number == number => {
            Answer::Say(GuestReport::Started { run: run.number, guest: number, pid: guest.pid })
        }
        Some(Visit::Here(_)) => never(StartFailure::Occupied { run: run.number }),
        Some(Visit::Gone { number: last, .. }) if number <= *last => Answer::Say(gone(run, number)),
        // A run with its own terminal can be joined there, and a run that ends takes no guest.
        Some(Visit::Gone { .. }) | None if run.pty.is_some() || run.is_being_ended() => {
            never(refused(Errno::BUSY))
        }
        Some(Visit::Gone { .. }) | None => Answer::Start,
    }
}

/// Returns the report on a guest that is not there.
fn gone(run: &Run, number: u64) -> GuestReport {
    let exit = match &run.visit {
        Some(Visit::Gone { number: last, exit }) if *last == number => *exit,
        Some(Visit::Gone { .. } | Visit::Here(_)) | None => Exit::NeverStarted,
    };
    GuestReport::Ended { run: run.number, guest: number, exit, why: None }
}
