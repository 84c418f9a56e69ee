//! The shim's loop: what came is heard, what is due is done, and an end is written down before it is told.

use super::input::Input;
use super::link::Links;
use super::notify::Notify;
use super::run::{Run, Stage, Tree, reap_strays};
use super::{output, raw, start};
use crate::command::{Command, Keep};
use crate::crash;
use crate::exited::Exited;
use crate::frame::VERSION;
use crate::log::{Log, Stream};
use crate::record::Records;
use crate::report::{Keeping, Report, Welcome};
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::ids::RunNumber;
use pinfold_core::time::{Boot, Wall};
use pinfold_lock::Guard;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The locks are kept over a gap between runs for so long, and no longer.
const GAP: Duration = Duration::from_secs(2);
/// A daemon that does not read gets this long for the last words.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// When nothing hurries any more after a start: a new record file is put on disk, unused memory given back.
const SETTLE: Duration = Duration::from_millis(700);

/// What a shim is about.
#[derive(Debug)]
pub(super) enum Phase {
    /// Not told to go yet: ends with its parent.
    Waiting,
    /// Holds the locks, for a while.
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
    pub(super) records: Records,
    pub(super) log: Log,
    pub(super) links: Links,
    pub(super) notify: Notify,
    pub(super) umask: Mode,
    pub(super) phase: Phase,
    signals: OwnedFd,
    death: Option<Death>,
    /// Whether it leaves when its run has ended.
    last: bool,
    settle: Option<Instant>,
    buffer: Vec<u8>,
}

/// The moment at which the tree has to end, come what may.
#[derive(Debug)]
struct Death {
    timer: OwnedFd,
    grace: Duration,
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
    Notify,
    Death,
}

impl Shim {
    #[expect(clippy::too_many_arguments, reason = "called once, with everything a shim is made of")]
    pub(super) fn new(
        keep: Keep,
        guards: Vec<Guard>,
        records: Records,
        log: Log,
        links: Links,
        notify: Notify,
        signals: OwnedFd,
        umask: Mode,
        phase: Phase,
    ) -> Self {
        Self {
            keep,
            guards,
            records,
            log,
            links,
            notify,
            umask,
            phase,
            signals,
            death: None,
            last: false,
            settle: None,
            buffer: Vec::new(),
        }
    }

    /// Lives until there is nothing left to keep.
    pub(super) fn live(mut self) -> ExitCode {
        // What came together with the first word is there already, and wakes nobody.
        self.greet();
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
        if let Some(daemon) = &mut self.links.daemon {
            daemon.flush(self.log.end());
        }
        let timeout = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
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

    /// What to wait for. Newcomers come first: a newer daemon's hello drops what the older one said.
    fn wakers(&self) -> Vec<(Waker, BorrowedFd<'_>, PollFlags)> {
        let mut all = vec![(Waker::Newcomers, self.links.listener.as_fd(), PollFlags::IN)];
        all.extend(self.links.pending.iter().map(|link| (Waker::Newcomers, link.as_fd(), PollFlags::IN)));
        if let Some(daemon) = &self.links.daemon {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, daemon.is_heard());
            flags.set(PollFlags::OUT, daemon.has_queued());
            all.push((Waker::Daemon, daemon.as_fd(), flags));
        }
        all.push((Waker::Signals, self.signals.as_fd(), PollFlags::IN));
        if let Phase::Running(run) = &self.phase {
            if let Stage::Starting(pipe) = &run.stage {
                all.push((Waker::Confirmation, pipe.as_fd(), PollFlags::IN));
            }
            let outputs = run.outputs.open();
            all.extend(outputs.map(|(number, fd)| (Waker::Output(number), fd, PollFlags::IN)));
            all.extend(run.input.wanting().map(|fd| (Waker::Input, fd, PollFlags::OUT)));
        }
        all.push((Waker::Notify, self.notify.as_fd(), PollFlags::IN));
        all.extend(self.death.as_ref().map(|death| (Waker::Death, death.timer.as_fd(), PollFlags::IN)));
        all
    }

    fn deadline(&self) -> Option<Instant> {
        let phase = match &self.phase {
            Phase::Waiting | Phase::Gone => None,
            Phase::Standing { until } => Some(*until),
            Phase::Running(run) => run.next_force(),
        };
        [phase, self.settle].into_iter().flatten().min()
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
            Waker::Input => self.with_input(Input::write),
            Waker::Notify => self.notify.read(),
            Waker::Death => self.die(),
        }
    }

    /// Hears newcomers, and welcomes a daemon among them.
    fn greet(&mut self) {
        if self.links.greet() {
            let welcome = self.welcome();
            self.links.report(&Report::Welcome(Box::new(welcome)));
            self.notify.tell_again();
            self.obey();
        }
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
        }
    }

    fn listen(&mut self) {
        if let Some(daemon) = self.links.daemon.as_mut().filter(|daemon| daemon.is_heard()) {
            daemon.read();
        }
        self.obey();
    }

    /// Obeys what the daemon has said so far.
    fn obey(&mut self) {
        while let Some(command) = self.links.daemon.as_mut().and_then(super::link::Link::command) {
            self.command(command);
        }
        if self.links.daemon.as_ref().is_some_and(super::link::Link::is_closed) {
            self.links.daemon = None;
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            // Said before, or by whoever did not read the contract.
            Command::Keep(_) | Command::Hello { .. } => {}
            Command::Go => self.go(),
            Command::Start(start) => self.start(&start),
            Command::Stop { run, grace } => self.stop(run, grace),
            Command::Interrupt { run } => self.with_run(run, |run| run.signal(Signal::INT)),
            Command::Input { run, message, attempt, bytes } => self.deliver(run, message, attempt, bytes),
            Command::CloseInput { run } => {
                if self.is_present(run) {
                    self.with_input(Input::close);
                }
            }
            Command::Release => self.release(),
            Command::DieAt { at, grace } => self.die_at(at, grace),
            Command::Ack { run } => self.records.acknowledge(run),
            Command::Follow { on } => {
                if let Some(daemon) = &mut self.links.daemon {
                    daemon.follow(on);
                }
            }
        }
    }

    fn go(&mut self) {
        if matches!(self.phase, Phase::Waiting) {
            self.stand();
        }
    }

    fn stand(&mut self) {
        self.phase = Phase::Standing { until: Instant::now() + GAP };
    }

    fn is_present(&self, number: RunNumber) -> bool {
        matches!(&self.phase, Phase::Running(run) if run.number == number)
    }

    fn with_run(&mut self, number: RunNumber, what: impl FnOnce(&mut Run)) {
        match &mut self.phase {
            Phase::Running(run) if run.number == number => what(run),
            Phase::Running(_) | Phase::Waiting | Phase::Standing { .. } | Phase::Gone => {
                let answer = match self.records.of(number) {
                    Ok(Some(exited)) => start::told(exited),
                    Ok(None) | Err(_) => Report::NoSuchRun { run: number },
                };
                self.links.report(&answer);
            }
        }
    }

    fn with_input(&mut self, what: impl FnOnce(&mut Input) -> Vec<Report>) {
        if let Phase::Running(run) = &mut self.phase {
            for report in what(&mut run.input) {
                self.links.report(&report);
            }
        }
    }

    fn deliver(
        &mut self,
        run: RunNumber,
        message: pinfold_core::ids::MessageId,
        attempt: u32,
        bytes: Vec<u8>,
    ) {
        if self.is_present(run) {
            self.with_input(|input| input.deliver(message, attempt, bytes));
        } else {
            let why = crate::report::InputRefused::Closed;
            self.links.report(&Report::InputRefused { run, message, attempt, why });
        }
    }

    fn stop(&mut self, run: RunNumber, grace: Duration) {
        let now = Instant::now();
        self.with_run(run, |run| run.stop(grace, now));
    }

    fn release(&mut self) {
        if let Phase::Standing { .. } | Phase::Waiting = self.phase {
            self.leave();
        }
    }

    fn take_signals(&mut self) {
        let mut bytes = [0; raw::SIGNAL];
        while let Ok(raw::SIGNAL) = rustix::io::read(&self.signals, &mut bytes) {
            let number = raw::signal_number(&bytes);
            if number == libc::SIGTERM as u32 || number == libc::SIGINT as u32 {
                self.end(None);
            }
        }
        if !matches!(self.phase, Phase::Running(_)) {
            reap_strays();
        }
    }

    /// Ends the run, if there is one, and leaves behind it.
    fn end(&mut self, grace: Option<Duration>) {
        self.last = true;
        match &mut self.phase {
            Phase::Running(run) => {
                let grace = grace.unwrap_or(run.grace);
                run.stop(grace, Instant::now());
            }
            Phase::Waiting | Phase::Standing { .. } => self.leave(),
            Phase::Gone => {}
        }
    }

    fn die_at(&mut self, at: Option<Boot>, grace: Duration) {
        self.death = at.and_then(|at| death(at, grace).ok());
    }

    fn die(&mut self) {
        if let Some(death) = self.death.take() {
            self.end(Some(death.grace));
        }
    }

    fn read_output(&mut self, number: usize) {
        // Whatever prints has been executed: that is said first.
        self.announce();
        let Phase::Running(run) = &mut self.phase else { return };
        if let Some(stream) = run.outputs.read(number, &mut self.buffer) {
            print(&mut self.log, &mut self.links, run.number, stream, &self.buffer);
        }
    }

    /// Does what is due, now that everything that came was heard.
    fn advance(&mut self) {
        let now = Instant::now();
        self.drop_closed();
        if self.settle.is_some_and(|at| now >= at) {
            self.settle = None;
            // A failure shows again when a record is written.
            let _ = self.records.settle();
            raw::trim_memory();
        }
        match &mut self.phase {
            Phase::Waiting if !self.links.has_parent() => self.leave(),
            Phase::Standing { until } if now >= *until => self.leave(),
            Phase::Running(run) => {
                let tree = run.reap();
                run.force(now);
                let ended = tree == Tree::Empty && matches!(run.stage, Stage::Ending(_));
                self.announce();
                self.tell();
                if ended {
                    self.finish();
                }
            }
            Phase::Waiting | Phase::Standing { .. } | Phase::Gone => {}
        }
    }

    fn drop_closed(&mut self) {
        if self.links.daemon.as_ref().is_some_and(super::link::Link::is_closed) {
            self.links.daemon = None;
        }
    }

    /// Says that the agent runs, once that is known.
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

    /// What is said of a run that was started before.
    pub(super) fn started(&self, run: &Run) -> Report {
        Report::Started { run: run.number, process: run.process, at: run.at }
    }

    /// Passes on what the agent said, while the daemon listens.
    fn tell(&mut self) {
        let Phase::Running(run) = &self.phase else { return };
        let Some(daemon) = self.links.daemon.as_mut().filter(|daemon| daemon.is_heard()) else { return };
        for report in self.notify.untold(run.number) {
            daemon.report(&report);
        }
    }

    /// The tree is empty: reads what it left behind, and writes down how it ended.
    fn finish(&mut self) {
        let Phase::Running(mut run) = std::mem::replace(&mut self.phase, Phase::Gone) else { return };
        crash::point("end.empty");
        let number = run.number;
        let (log, links) = (&mut self.log, &mut self.links);
        run.outputs.drain(&mut self.buffer, &mut |stream, bytes| print(log, links, number, stream, bytes));
        self.buffer.shrink_to(output::READ);
        self.log.settle();
        self.notify.read();
        for report in run.input.shut() {
            self.links.report(&report);
        }
        for report in self.notify.untold(number) {
            self.links.report(&report);
        }
        if let Some(why) = run.failure {
            return self.start_failed(number, why);
        }
        let exited = self.exited(&run);
        drop(run);
        self.settle_end(exited);
    }

    fn exited(&self, run: &Run) -> Exited {
        let exit = match run.stage {
            Stage::Ending(exit) => exit,
            Stage::Starting(_) | Stage::Running => Exit::NeverStarted,
        };
        Exited {
            run: run.number,
            ended: Ended {
                exit,
                said: self.notify.said(),
                recognised: None,
                oom_killed: run.group.as_ref().is_some_and(super::group::Group::ran_out_of_memory),
                forced: run.stopping.is_some_and(|stopping| stopping.forced),
                lived: run.lived,
            },
            failure: None,
            pid: run.process.pid,
            fence: run.process.fence,
            at: wall(),
            log: self.log.end(),
        }
    }

    /// Writes an end down, then tells it, then waits for what comes next, or leaves.
    pub(super) fn settle_end(&mut self, exited: Exited) {
        // A disk that fails must not keep the daemon, which has its own, from knowing.
        let _ = self.records.append(&exited);
        self.links.report(&start::told(exited));
        if let Some(daemon) = &mut self.links.daemon {
            daemon.flush(self.log.end());
        }
        crash::point("end.reported");
        self.drop_closed();
        if self.last || !self.links.has_daemon() {
            self.leave();
        } else {
            self.stand();
        }
    }

    /// Gives everything back, in order, and says so. Nothing of the tree lives any more.
    fn leave(&mut self) {
        self.phase = Phase::Gone;
        crash::point("leave.unmarked");
        // Before the lock is free: behind it, the path belongs to the next shim.
        let _ = rustix::fs::unlink(&self.keep.listen);
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
            let timeout = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
            let _ = rustix::event::poll(&mut [PollFd::new(daemon, PollFlags::OUT)], Some(&timeout));
        }
    }
}

/// Logs what was printed, and shows it to the daemon.
fn print(log: &mut Log, links: &mut Links, run: RunNumber, stream: Stream, bytes: &[u8]) {
    let place = log.append(wall(), run, stream, bytes);
    if let Some(daemon) = &mut links.daemon {
        daemon.output(run, stream, place, bytes);
    }
}

fn death(at: Boot, grace: Duration) -> Result<Death, Errno> {
    // Time asleep counts: only this clock goes on meanwhile.
    let timer = rustix::time::timerfd_create(
        TimerfdClockId::Boottime,
        TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
    )?;
    let value = Timespec {
        tv_sec: i64::try_from(at.0 / 1000).unwrap_or(i64::MAX),
        // All zeroes would disarm it.
        tv_nsec: i64::try_from(at.0 % 1000 * 1_000_000).unwrap_or(0) + 1,
    };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    rustix::time::timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(Death { timer, grace })
}

/// The wall clock.
pub(super) fn wall() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
