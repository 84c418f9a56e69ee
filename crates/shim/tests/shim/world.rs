//! A home of its own for every test, which plays the daemon.

use pinfold_core::ids::RunNumber;
use pinfold_lock::{Folder, Guard, LockSeen, Request, Resource, RunName, SessionName, Survivors};
use pinfold_shim::client::{Opening, ReceiveError, ShimConnection, spawn};
use pinfold_shim::log::{LogReader, Position, Stream};
use pinfold_shim::{Command, Directory, Exited, Listens, Report, Start, Tie, Welcome};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// Far longer than anything takes, on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) struct World {
    _limit: crate::limit::Limit,
    temp: tempfile::TempDir,
    pub(crate) folder: Folder,
    /// The lock that makes this process the daemon.
    only: std::sync::Mutex<std::fs::File>,
}

pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) link: ShimConnection,
    pub(crate) welcome: Welcome,
    /// Reports that came while another one was waited for.
    pub(crate) passed: Vec<Report>,
}

fn home_lock(home: &Path) -> std::fs::File {
    let only = std::fs::File::create(home.join(pinfold_shim::DAEMON_LOCK)).unwrap();
    only.lock().unwrap();
    only
}

impl World {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::open(temp.path().join("locks")).unwrap();
        std::fs::create_dir(temp.path().join("work")).unwrap();
        let only = home_lock(temp.path()).into();
        Self { _limit: crate::limit::Limit::of_test(), temp, folder, only }
    }

    /// Makes this process no longer the daemon.
    pub(crate) fn lose_home(&self) {
        self.only.lock().unwrap().unlock().unwrap();
    }

    /// Makes this process the daemon again, with a recreated file.
    pub(crate) fn take_home_anew(&self) {
        std::fs::remove_file(self.path(pinfold_shim::DAEMON_LOCK)).unwrap();
        *self.only.lock().unwrap() = home_lock(self.temp.path());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn opening(&self, session: &str) -> Opening {
        Opening {
            program: env!("CARGO_BIN_EXE_test-pinfold-shim").into(),
            arguments: Vec::new(),
            session: session.into(),
            listen: self.path(&format!("{session}.sock")),
            listens: Listens::AtOnce,
            records: self.path(&format!("{session}.exits")),
            log: self.path(&format!("{session}.log")),
            tape: Some(self.path(&format!("{session}.tape"))),
            tie: Tie::Free,
            foreground: None,
            crash_at: None,
        }
    }

    pub(crate) fn session(session: &str) -> Resource {
        Resource::Session(SessionName::new(session).unwrap())
    }

    pub(crate) fn lock(&self, session: &str) -> Guard {
        let request = Request {
            run: Some(RunName::new(format!("reserve-{}", unique())).unwrap()),
            survivors: Survivors::End,
            ..Request::default()
        };
        let until = Instant::now() + PATIENCE;
        self.folder.acquire_until(&Self::session(session), &request, until).unwrap()
    }

    pub(crate) fn holder(&self, session: &str) -> Option<LockSeen> {
        self.folder.holder_of(&Self::session(session)).unwrap()
    }

    /// Starts a shim that has the lock of a session and was told to go.
    pub(crate) fn shim(&self, session: &str) -> Daemon {
        let mut daemon = self.waiting_shim(session);
        daemon.send(&Command::Go);
        daemon
    }

    /// Starts a shim that was not told to go.
    pub(crate) fn waiting_shim(&self, session: &str) -> Daemon {
        let guard = self.lock(session);
        let (child, mut link) = spawn(&self.opening(session), &[(&self.folder, &guard)]).unwrap();
        link.send(&Command::Hello { generation: 1 }).unwrap();
        let welcome = welcome(&mut link);
        let _receipt = guard.surrender();
        Daemon { child, link, welcome, passed: Vec::new() }
    }

    /// Another daemon connects.
    pub(crate) fn connect(&self, session: &str, generation: u64) -> ShimConnection {
        let mut link = ShimConnection::connect(&self.opening(session).listen).unwrap();
        link.send(&Command::Hello { generation }).unwrap();
        link
    }

    pub(crate) fn log(&self, session: &str, stream: Stream) -> Vec<u8> {
        let mut reader = LogReader::from(&self.opening(session).log, Position(0));
        let mut bytes = Vec::new();
        while let Some(entry) = reader.entry().unwrap() {
            if entry.stream == stream {
                bytes.extend_from_slice(&entry.bytes);
            }
        }
        bytes
    }

    pub(crate) fn records(&self, session: &str) -> Vec<Exited> {
        pinfold_shim::record::read(&self.opening(session).records).unwrap()
    }
}

impl World {
    /// Returns the sessions that had a shim here.
    fn sessions(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.temp.path()).into_iter().flatten().flatten();
        let stem = |path: PathBuf| {
            let ours = path.extension().is_some_and(|end| end == "exits" || end == "sock");
            path.file_stem().filter(|_| ours).map(|stem| stem.to_string_lossy().into_owned())
        };
        files.filter_map(|entry| stem(entry.path())).collect()
    }

    /// Ends the holder of a session's lock, and what a killed shim left alive.
    fn end(&self, session: &str) {
        let Ok(name) = SessionName::new(session) else { return };
        let resource = Resource::Session(name);
        _ = self.folder.end_holder(&resource);
        let request = Request { survivors: Survivors::End, ..Request::default() };
        _ = self.folder.acquire_until(&resource, &request, Instant::now() + Duration::from_secs(240));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A killed shim leaves its socket and its control group behind, agents that are just ending, and what
        // those had started: the next holder of the lock ends that.
        for session in self.sessions() {
            self.end(&session);
            let listen = self.opening(&session).listen;
            let until = Instant::now() + Duration::from_secs(1);
            while pinfold_shim::client::sweep(&listen).is_err() && Instant::now() < until {
                std::thread::yield_now();
            }
        }
    }
}

pub(crate) fn welcome(link: &mut ShimConnection) -> Welcome {
    match link.receive(Some(Instant::now() + PATIENCE)).unwrap() {
        Some(Report::Welcome(welcome)) => *welcome,
        other => panic!("{other:?} instead of a welcome"),
    }
}

/// Returns how to start a shell command as a run.
pub(crate) fn shell(run: u64, script: &str) -> Start {
    command(run, &["/bin/sh", "-c", script])
}

pub(crate) fn command(run: u64, words: &[&str]) -> Start {
    Start {
        run: RunNumber(run),
        run_id: format!("run-{}-{run}", unique()),
        arguments: words.iter().map(OsString::from).collect(),
        environment: vec!["PATH=/usr/local/bin:/usr/bin:/bin".into(), "GIVEN=yes".into()],
        directory: Directory::Path("/".into()),
        ..Start::default()
    }
}

fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    u64::from(std::process::id()) << 32 | NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Daemon {
    pub(crate) fn send(&mut self, command: &Command) {
        self.link.send(command).unwrap();
    }

    pub(crate) fn start(&mut self, start: Start) {
        self.send(&Command::Start(Box::new(start)));
    }

    /// Returns the next report that `pick` takes.
    pub(crate) fn expect<T>(&mut self, what: &str, mut pick: impl FnMut(&Report) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.link.receive(Some(until)) {
                Ok(Some(report)) => {
                    if let Some(found) = pick(&report) {
                        return found;
                    }
                    self.passed.push(report);
                }
                Ok(None) => panic!("the shim left before {what}; it said {:?}", self.passed),
                Err(error) => panic!("{error} while waiting for {what}; it said {:?}", self.passed),
            }
        }
    }

    pub(crate) fn started(&mut self) -> (u64, u32, u64) {
        self.expect("Started", |report| match report {
            Report::Started { run, process, .. } => Some((run.0, process.pid, process.fence)),
            Report::StartFailed { run, why } => panic!("{run} failed: {why:?}"),
            _ => None,
        })
    }

    pub(crate) fn exited(&mut self) -> Exited {
        self.expect("Exited", |report| match report {
            Report::Exited(exited) => Some(exited.clone()),
            Report::StartFailed { run, why } => panic!("{run} failed: {why:?}"),
            _ => None,
        })
    }

    /// Waits until the shim has finished what it does after reporting an end: then it answers.
    pub(crate) fn let_settle(&mut self) {
        self.send(&Command::Interrupt { run: RunNumber(u64::MAX) });
        self.expect("an answer", |report| matches!(report, Report::NoSuchRun { .. }).then_some(()));
    }

    /// Waits until the shim has reported `text` as the agent's output.
    pub(crate) fn printed(&mut self, text: &str) {
        let mut seen = Vec::new();
        self.expect(text, |report| match report {
            Report::Output(output) => {
                seen.extend_from_slice(&output.bytes);
                String::from_utf8_lossy(&seen).contains(text).then_some(())
            }
            _ => None,
        });
    }

    /// Waits until the shim has closed the connection; returns what it said before.
    pub(crate) fn gone(&mut self) -> Vec<Report> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.link.receive(Some(until)) {
                Ok(Some(report)) => self.passed.push(report),
                Ok(None) => break,
                Err(ReceiveError::Kernel(_)) => break,
                Err(error) => panic!("{error}; it said {:?}", self.passed),
            }
        }
        self.child.ended();
        std::mem::take(&mut self.passed)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A failed test leaves nothing behind: the agent dies with its shim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The end of a process that a test started, awaited with a limit and with its name in the failure.
pub(crate) trait Ends {
    /// Waits for the end.
    fn ended(&mut self) -> std::process::ExitStatus;
}

impl Ends for Child {
    #[track_caller]
    fn ended(&mut self) -> std::process::ExitStatus {
        wait_for_end(self.id());
        self.wait().unwrap()
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a process that may already be gone.
pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// Returns the direct children of a process.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let text = read(format!("/proc/{pid}/task/{pid}/children").as_ref());
    text.split_ascii_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// Waits until a process has ended.
#[track_caller]
pub(crate) fn wait_for_end(pid: u32) {
    let Some(number) = rustix::process::Pid::from_raw(pid.cast_signed()) else { return };
    let Ok(pidfd) = rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()) else { return };
    let timeout = rustix::event::Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut fds = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
    let ended = rustix::event::poll(&mut fds, Some(&timeout));
    let words = read(format!("/proc/{pid}/cmdline").as_ref()).replace('\0', " ");
    assert_eq!(ended, Ok(1), "process {pid} ({words}) does not end");
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
