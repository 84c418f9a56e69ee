//! The shim's loop: takes what came, then does what is due. It waits only for the kernel.

use super::daemons::{DaemonLink, Links};
use super::gate::Spare;
use super::guest::Visit;
use super::input::AgentInput;
use super::notify::Notify;
use super::pty::Pty;
use super::raw;
use super::run::{Run, RunStage, TreeState, reap_strays};
use super::turns::{MarkedLine, Turns};
use super::viewer::{self, Newcomer, Viewers};
use crate::crash;
use crate::files::log::{Log, Stream};
use crate::files::record::Records;
use crate::files::tape::Tape;
use crate::files::turn::DoneLine;
use crate::protocol::frame::VERSION;
use crate::protocol::keep::{Keep, Tie};
use crate::protocol::report::Report;
use crate::protocol::tape::Can;
use crate::protocol::welcome::{Keeping, Welcome};
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use pinfold_kernel::clock;
use pinfold_kernel::signals::SignalFd;
use pinfold_lock::Guard;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::Mode;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long after a start or a burst nothing is urgent any more: then a new record file is synced, and memory
/// returned.
const SETTLE: Duration = Duration::from_millis(700);
/// Most reads of what is printed meanwhile: an agent that never stops printing must not keep a message from
/// being written.
const CATCH_UP: u32 = 16;
/// Output that leaves no more than a page of memory behind.
const SHORT: usize = 4096;

/// What a shim is doing.
#[derive(Debug)]
pub(super) enum Phase {
    /// Not told to go yet; ends with its parent.
    Waiting,
    /// Holds the locks, until a deadline.
    Standing { until: Instant },
    /// Keeps a run.
    Running(Box<Run>),
    /// Has given everything back.
    Gone,
}

/// A shim.
#[derive(Debug)]
pub(super) struct Shim {
    pub(super) keep: Keep,
    pub(super) guards: Vec<Guard>,
    /// The standard streams for agents, if they come from the caller.
    pub(super) streams: Option<[OwnedFd; 3]>,
    pub(super) records: Records,
    pub(super) log: Log,
    /// Open from the first run that has one.
    pub(super) tape: Option<Box<Tape>>,
    pub(super) links: Links,
    pub(super) viewers: Viewers,
    pub(super) notify: Notify,
    pub(super) umask: Mode,
    pub(super) phase: Phase,
    /// A child that waits for the order to start.
    pub(super) spare: Option<Spare>,
    pub(super) signals: SignalFd,
    /// Whether it leaves when its run has ended.
    pub(super) last: bool,
    pub(super) settle: Option<Instant>,
    /// When the record of an end is synced, unless the daemon says before that it is stored.
    pub(super) unstored: Option<Instant>,
    pub(super) buffer: Vec<u8>,
}

/// What can wake a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waker {
    Signals,
    Newcomers,
    Daemon,
    Confirmation,
    Output(usize),
    Input,
    Words,
    Keys,
    Guest,
    Viewer(usize),
    Notify,
}

impl Shim {
    /// Runs until there is nothing left to keep.
    pub(super) fn live(mut self) -> ExitCode {
        // Bytes that came with the first word are here already, so poll does not report them; nor does it
        // their end.
        self.greet();
        self.advance();
        while !matches!(self.phase, Phase::Gone) {
            let Ok(awake) = self.wait() else {
                // Without poll nothing can be kept: the tree ends with the shim, by the parent-death signal.
                return ExitCode::FAILURE;
            };
            for waker in awake {
                self.heed(waker);
            }
            self.advance();
        }
        ExitCode::SUCCESS
    }

    fn wait(&mut self) -> Result<Vec<Waker>, Errno> {
        self.tend_tape();
        if let Some(daemon) = &mut self.links.daemon {
            daemon.flush(self.log.end());
        }
        let timeout = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.map(clock::timespec);
        let wakers = self.wakers();
        let mut fds: Vec<_> =
            wakers.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let awake = fds.iter().zip(&wakers).filter(|(fd, _)| !fd.revents().is_empty());
        Ok(awake.map(|(_, (waker, _, _))| *waker).collect())
    }

    /// Returns what to wait for. Newcomers come first: a newer daemon's hello drops what the older one said.
    fn wakers(&self) -> Vec<(Waker, BorrowedFd<'_>, PollFlags)> {
        let mut all = Vec::with_capacity(8);
        if let (Some(listener), None) = (&self.links.listener, self.links.deaf()) {
            all.push((Waker::Newcomers, listener.as_fd(), PollFlags::IN));
        }
        all.extend(self.links.pending.iter().map(|link| (Waker::Newcomers, link.as_fd(), PollFlags::IN)));
        if let Some(daemon) = &self.links.daemon {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, daemon.is_heard());
            flags.set(PollFlags::OUT, daemon.has_queued());
            all.push((Waker::Daemon, daemon.as_fd(), flags));
        }
        all.push((Waker::Signals, self.signals.as_fd(), PollFlags::IN));
        if let Phase::Running(run) = &self.phase {
            if let (RunStage::Starting(pipe), None) = (&run.stage, run.undisturbed) {
                all.push((Waker::Confirmation, pipe.as_fd(), PollFlags::IN));
            }
            let outputs = run.outputs.open().filter(|_| self.reads(run));
            all.extend(outputs.map(|(number, fd)| (Waker::Output(number), fd, PollFlags::IN)));
            all.extend(run.input.wanting().map(|fd| (Waker::Input, fd, PollFlags::OUT)));
            let words = run.taping.as_ref().and_then(|taping| taping.words.wanting());
            all.extend(words.map(|fd| (Waker::Words, fd, PollFlags::OUT)));
            let keys = run.shown().and_then(Pty::wanting);
            all.extend(keys.map(|fd| (Waker::Keys, fd, PollFlags::OUT)));
            if let Some(guest) = run.visit.as_ref().and_then(Visit::here) {
                let starting = guest.starting.iter().map(AsFd::as_fd);
                let all_of_it = guest.output.open().map(|(_, fd)| fd).chain(starting);
                all.extend(all_of_it.map(|fd| (Waker::Guest, fd, PollFlags::IN)));
            }
        }
        let listens = self.pty().is_none_or(Pty::listens);
        let viewers = self.viewers.wakers(listens);
        all.extend(viewers.map(|(index, fd, flags)| (Waker::Viewer(index), fd, flags)));
        if self.notify.deaf().is_none() {
            all.push((Waker::Notify, self.notify.as_fd(), PollFlags::IN));
        }
        all
    }

    fn deadline(&self) -> Option<Instant> {
        let phase = match &self.phase {
            Phase::Waiting | Phase::Gone => None,
            Phase::Standing { until } => Some(*until),
            Phase::Running(run) => {
                let again = run.taping.as_ref().and_then(|taping| taping.again());
                let guest = run.visit.as_ref().and_then(Visit::here).and_then(|guest| guest.killing);
                run.next_force().into_iter().chain(run.undisturbed).chain(again).chain(guest).min()
            }
        };
        let paint = self.pty().and_then(|_| self.viewers.deadline());
        let spare = self.spare.as_ref().map(|spare| spare.until);
        let (deaf, look) = (self.links.deaf(), self.links.look());
        let flooded = self.notify.deaf();
        [phase, spare, self.unstored, self.settle, deaf, look, paint, flooded].into_iter().flatten().min()
    }

    fn heed(&mut self, waker: Waker) {
        match waker {
            Waker::Newcomers => {
                self.links.accept();
                self.greet();
            }
            Waker::Daemon => self.listen(),
            Waker::Signals => self.take_signals(),
            Waker::Confirmation => self.announce(),
            Waker::Output(number) => self.read_output(number),
            Waker::Input => self.with_input(AgentInput::write),
            Waker::Words => self.with_words(|taping| taping.words.write()),
            Waker::Keys => {
                if let Some(pty) = pty_of(&mut self.phase) {
                    pty.write();
                }
            }
            Waker::Guest => self.read_guest(),
            Waker::Viewer(index) => self.viewers.hear(index, pty_of(&mut self.phase)),
            Waker::Notify => self.notify.read(match &self.phase {
                Phase::Running(run) => Some(run),
                Phase::Waiting | Phase::Standing { .. } | Phase::Gone => None,
            }),
        }
    }

    /// Reads newcomers, and welcomes a daemon among them.
    fn greet(&mut self) {
        let (daemon, viewers) = self.links.greet(&self.keep.records);
        for newcomer in viewers {
            self.show(newcomer);
        }
        if daemon {
            let welcome = self.welcome();
            if let (Some(tape), Some(daemon)) = (&welcome.tape, &mut self.links.daemon) {
                daemon.knows_end(tape.run, tape.end);
            }
            self.links.report(&Report::Welcome(Box::new(welcome)));
            self.notify.tell_again();
            if let Phase::Running(run) = &mut self.phase {
                run.tell_survivors_again(Instant::now());
                run.pty.iter_mut().for_each(|pty| pty.bell.tell_again());
            }
            self.obey();
        }
    }

    /// Takes a client that wants to see the terminal, unless there is none, or it belongs to another run.
    fn show(&mut self, newcomer: Newcomer) {
        let (socket, _, join, _) = &newcomer;
        let wanted = match &self.phase {
            Phase::Running(run) => run.shown().is_some() && run.number == join.run,
            Phase::Waiting | Phase::Standing { .. } => true,
            Phase::Gone => false,
        };
        if wanted && !self.viewers.is_full() {
            self.viewers.join(newcomer, pty_of(&mut self.phase));
            self.settle = Some(Instant::now() + SETTLE);
        } else {
            viewer::refuse(socket);
        }
    }

    pub(super) fn pty(&self) -> Option<&Pty> {
        if let Phase::Running(run) = &self.phase { run.shown() } else { None }
    }

    fn welcome(&self) -> Welcome {
        let keeping = match &self.phase {
            Phase::Waiting | Phase::Standing { .. } | Phase::Gone => Keeping::Standing,
            Phase::Running(run) if run.announced => {
                Keeping::Running { run: run.number, process: run.process, at: run.at }
            }
            Phase::Running(run) => Keeping::Starting { run: run.number },
        };
        Welcome {
            version: VERSION,
            shim: std::process::id(),
            generation: self.links.generation(),
            keeping,
            exits: self.records.unacknowledged().unwrap_or_default(),
            log: self.log.end(),
            can: Can::now(self.keep.tape.is_some()),
            tape: self.tape_standing(),
            guest: self.guest_standing(),
        }
    }

    fn listen(&mut self) {
        if let Some(daemon) = self.links.daemon.as_mut().filter(|daemon| daemon.is_heard()) {
            daemon.read();
        }
        self.obey();
    }

    /// Obeys the commands received so far.
    fn obey(&mut self) {
        while let Some(command) = self.links.daemon.as_mut().and_then(DaemonLink::command) {
            self.command(command);
        }
        if let Some(daemon) = &mut self.links.daemon {
            daemon.drop_descriptors();
        }
        if self.links.daemon.as_ref().is_some_and(DaemonLink::is_closed) {
            self.links.daemon = None;
        }
    }

    fn take_signals(&mut self) {
        while let Ok(number) = self.signals.next() {
            if number == libc::SIGTERM || number == libc::SIGINT {
                self.end();
            }
        }
        if !matches!(self.phase, Phase::Running(_)) {
            reap_strays();
        }
    }

    /// Ends the run, if there is one, and leaves after it.
    fn end(&mut self) {
        self.last = true;
        match &mut self.phase {
            Phase::Running(run) => run.stop(run.grace, Instant::now()),
            Phase::Waiting | Phase::Standing { .. } => self.leave(),
            Phase::Gone => {}
        }
    }

    fn read_output(&mut self, number: usize) {
        // An agent that prints has been executed: that is reported first.
        self.announce();
        let Phase::Running(run) = &mut self.phase else { return };
        if run.taping.is_some() {
            self.tape_output(number);
        } else if let Some(stream) = run.outputs.read(number, &mut self.buffer) {
            if let Some(pty) = &mut run.pty {
                run.outputs.read_on(number, &mut self.buffer);
                mirror(pty, &mut self.viewers, &self.buffer);
            }
            self.log.printed_on(run.pty.as_ref().map(|pty| pty.screen.size()));
            hear(&mut self.log, &mut self.links, &mut run.turns, run.number, stream, &self.buffer);
        } else if run.outputs.has_ended(number) {
            hear_end(&self.log, &mut self.links, &mut run.turns, run.number);
        }
        if self.buffer.len() > SHORT {
            self.settle_soon();
        }
    }

    /// Schedules the return of memory after a burst.
    pub(super) fn settle_soon(&mut self) {
        self.settle = Some(Instant::now() + SETTLE);
    }

    /// Reads everything that has been printed so far. What an agent prints meanwhile is read too, unless it
    /// never ends.
    pub(super) fn catch_up(&mut self) {
        for number in 0..2 {
            let mut due = if let Phase::Running(run) = &self.phase { run.outputs.waiting(number) } else { 0 };
            let mut left = CATCH_UP;
            while due > 0 || left > 0 {
                self.buffer.clear();
                self.read_output(number);
                if self.buffer.is_empty() {
                    break;
                }
                (due, left) = (due.saturating_sub(self.buffer.len()), left.saturating_sub(1));
            }
        }
    }

    /// Does what is due, after all input was handled.
    fn advance(&mut self) {
        let now = Instant::now();
        self.drop_closed();
        if !self.viewers.is_empty() {
            self.viewers.drop_closed(pty_of(&mut self.phase));
            let pty = if let Phase::Running(run) = &self.phase { run.shown() } else { None };
            self.viewers.serve(pty, now);
        }
        self.links.recover(now);
        self.notify.recover(now);
        self.links.listen_if_lost(&self.keep, now);
        if self.keep.tie == Tie::ToParent && !self.last && !self.links.has_parent() {
            self.end();
        }
        if self.settle.is_some_and(|at| now >= at) {
            self.settle_down();
        }
        if self.unstored.is_some_and(|at| now >= at || !self.links.has_daemon()) {
            self.store_end();
        }
        if self.spare.as_ref().is_some_and(|spare| now >= spare.until) {
            self.drop_spare();
        }
        match &mut self.phase {
            Phase::Waiting if !self.links.has_parent() => self.leave(),
            Phase::Standing { until } if now >= *until => self.leave(),
            Phase::Running(run) => {
                run.undisturbed = run.undisturbed.filter(|until| now < *until);
                let tree = run.reap();
                self.notify.last_words(run);
                if tree == TreeState::Populated {
                    run.force(now);
                    self.notify.last_words(run);
                    let number = run.number;
                    if let Some(left) = run.new_survivors(now) {
                        self.links.report(&Report::Survivors { run: number, left: left.clone() });
                    }
                }
                let ended = tree == TreeState::Empty && matches!(run.stage, RunStage::Ending(_));
                self.announce();
                self.tell();
                self.tend_guest(now);
                if ended {
                    self.finish();
                }
            }
            Phase::Waiting | Phase::Standing { .. } | Phase::Gone => {}
        }
    }

    /// Does what waited until nothing is urgent: syncs a new record file, returns memory.
    fn settle_down(&mut self) {
        self.settle = None;
        // A failure shows again when a record is written.
        let _ = self.records.settle();
        self.buffer = Vec::new();
        if let Some(daemon) = &mut self.links.daemon {
            daemon.shrink();
        }
        raw::trim_memory();
    }

    pub(super) fn drop_closed(&mut self) {
        if self.links.daemon.as_ref().is_some_and(DaemonLink::is_closed) {
            self.links.daemon = None;
        }
    }

    /// Reports that the agent runs, once that is known.
    fn announce(&mut self) {
        let Phase::Running(run) = &mut self.phase else { return };
        run.confirm();
        if run.is_news() {
            crash::point("start.confirmed");
            run.announced = true;
            self.settle = Some(Instant::now() + SETTLE);
            let report = Report::Started { run: run.number, process: run.process, at: run.at };
            self.links.report(&report);
        }
    }

    /// Returns the report on a run that was started before.
    pub(super) fn started(&self, run: &Run) -> Report {
        Report::Started { run: run.number, process: run.process, at: run.at }
    }

    /// Passes on what the agent said, while the daemon listens.
    fn tell(&mut self) {
        let Phase::Running(run) = &mut self.phase else { return };
        let Some(daemon) = self.links.daemon.as_mut().filter(|daemon| daemon.is_heard()) else { return };
        for report in self.notify.untold(run.number) {
            daemon.report(&report);
        }
        if let Some(ring) = run.pty.as_mut().and_then(|pty| pty.bell.news()) {
            daemon.report(&Report::Rang { run: run.number, ring });
        }
    }
}

/// Returns the terminal of the run, if it has one.
pub(super) fn pty_of(phase: &mut Phase) -> Option<&mut Pty> {
    if let Phase::Running(run) = phase { run.shown_mut() } else { None }
}

/// Updates the screen with printed bytes, and shows them to attached clients.
pub(super) fn mirror(pty: &mut Pty, viewers: &mut Viewers, bytes: &[u8]) {
    viewers.output(bytes, pty.screen.size());
    pty.screen.feed(bytes);
    let attention = pty.screen.attention();
    pty.bell.printed(attention, || (Instant::now(), wall()));
    let answers = pty.screen.answers();
    // An attached client's terminal answers for itself.
    if viewers.is_empty() && !answers.is_empty() {
        pty.type_keys(&answers);
    }
}

/// Logs printed bytes, and reports the ends of turns in them: the log is split there.
pub(super) fn hear(
    log: &mut Log,
    links: &mut Links,
    turns: &mut Turns,
    run: RunNumber,
    stream: Stream,
    bytes: &[u8],
) {
    let mut rest = bytes;
    while let Some((end, heard)) = turns.hear(stream, rest) {
        let (line, behind) = rest.split_at(end);
        print(log, links, run, stream, line);
        tell_heard(log, links, turns, run, heard);
        rest = behind;
    }
    if !rest.is_empty() {
        print(log, links, run, stream, rest);
    }
}

/// The output has ended, and with it the last line.
pub(super) fn hear_end(log: &Log, links: &mut Links, turns: &mut Turns, run: RunNumber) {
    if let Some(heard) = turns.hear_end() {
        tell_heard(log, links, turns, run, heard);
    }
}

fn tell_heard(log: &Log, links: &mut Links, turns: &mut Turns, run: RunNumber, heard: MarkedLine) {
    let report = match heard {
        MarkedLine::Answer { answer, whole, named } => {
            turns.done(DoneLine { to: log.end(), answer, whole, named })
        }
        MarkedLine::Stray { named } => turns.stray(run, named),
    };
    if let Some(report) = report {
        links.report(&report);
    }
}

/// Logs printed bytes, and sends them to the daemon.
fn print(log: &mut Log, links: &mut Links, run: RunNumber, stream: Stream, bytes: &[u8]) {
    let place = log.append(wall(), run, stream, bytes);
    if let Some(daemon) = &mut links.daemon {
        daemon.output(run, stream, place, bytes);
    }
}

/// Returns the wall clock's time.
pub(super) fn wall() -> Wall {
    Wall(i64::try_from(clock::wall_ms()).unwrap_or(i64::MAX))
}
