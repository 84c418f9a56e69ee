//! What a forked child does before it becomes the agent, and how it says why it cannot.

use super::raw;
use crate::crash;
use crate::protocol::command::Command;
use crate::protocol::exited::StartFailure;
use crate::protocol::frame::Decoder;
use crate::protocol::start::{Directory, Start};
use pinfold_kernel::program;
use pinfold_lock::Guard;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const SHELL: &CStr = c"/bin/sh";

/// Everything a child needs before it is told what to become.
pub(super) struct Child<'a> {
    pub(super) session: &'a str,
    /// The notify socket's name, if there is one.
    pub(super) notify: Option<&'a OsStr>,
    pub(super) guards: &'a [Guard],
    pub(super) umask: Mode,
    pub(super) shim: Pid,
    /// The locked directory, if there is one.
    pub(super) directory: Option<BorrowedFd<'a>>,
    /// Whether its standard streams are a terminal.
    pub(super) has_terminal: bool,
    pub(super) gate: ChildGate,
    pub(super) failure: OwnedFd,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Where a child waits until its identity is recorded.
pub(super) struct ChildGate {
    /// The shim's end. The child closes its copy, or it would wait for itself.
    pub(super) opener: Option<OwnedFd>,
    pub(super) waits: OwnedFd,
}

/// The step that a child failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    Prepare = 1,
    Enter = 2,
    Execute = 3,
    /// The file exists but cannot be executed.
    ExecuteFound = 4,
}

/// What a child says once it waits at its gate and will end with the shim.
pub(super) const HERE: u8 = 0;
/// Length of the fence with which an order at the gate begins.
const FENCE: usize = 8;
/// Length of what a child says if it cannot become the agent.
pub(super) const SAYING: usize = 5;

impl Child<'_> {
    /// Becomes the agent; returns the exit code if that is impossible.
    pub(super) fn live(&mut self) -> i32 {
        match self.become_agent() {
            Ok(()) => 0,
            Err((stage, errno)) => {
                let mut saying = [stage as u8; SAYING];
                saying[1..].copy_from_slice(&errno.raw_os_error().to_le_bytes());
                let _ = rustix::io::write(&self.failure, &saying);
                127
            }
        }
    }

    fn become_agent(&mut self) -> Result<(), (Stage, Errno)> {
        let prepare = |errno| (Stage::Prepare, errno);
        // A session of its own, so that an agent that signals its group does not hit the shim.
        rustix::process::setsid().map_err(prepare)?;
        crash::parent_dies_at("child.unbound", self.shim);
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(prepare)?;
        // The shim may have died before the line above, and then no signal comes.
        if rustix::process::getppid() != Some(self.shim) {
            return Err(prepare(Errno::SRCH));
        }
        rustix::io::write(&self.failure, &[HERE]).map_err(prepare)?;
        self.take_standard_streams().map_err(prepare)?;
        pinfold_kernel::signals::reset();
        let Some((fence, start)) = self.wait_at_gate() else { return Ok(()) };
        self.restore_limits(&start).map_err(prepare)?;
        self.enter(&start).map_err(|errno| (Stage::Enter, errno))?;
        pinfold_kernel::own::close_at_exec_from(3);
        if start.give_locks {
            for guard in self.guards {
                let given = guard.give_in_child();
                given.map_err(|error| prepare(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
            }
        }
        Err(execute(&start.arguments, &environment(&start, self.session, self.notify, fence)))
    }

    /// Waits until the shim has recorded the child's identity and says what to become; `None` if the shim has
    /// died.
    fn wait_at_gate(&mut self) -> Option<(u64, Box<Start>)> {
        self.gate.opener = None;
        let mut fence = Vec::with_capacity(FENCE);
        let mut decoder = Decoder::default();
        let mut bytes = [0; 4096];
        loop {
            let came = match rustix::io::read(&self.gate.waits, &mut bytes) {
                Ok(0) => return None,
                Ok(count) => &bytes[..count],
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let (first, rest) = came.split_at(came.len().min(FENCE - fence.len()));
            fence.extend_from_slice(first);
            decoder.feed(rest);
            if let Some(frame) = decoder.frame().ok()? {
                let Some(Command::Start(start)) = Command::decode(&frame).ok()? else { return None };
                return fence.first_chunk().map(|fence| (u64::from_le_bytes(*fence), start));
            }
        }
    }

    fn take_standard_streams(&self) -> Result<(), Errno> {
        if self.has_terminal {
            rustix::process::ioctl_tiocsctty(&self.stdin)?;
        }
        rustix::stdio::dup2_stdin(&self.stdin)?;
        rustix::stdio::dup2_stdout(&self.stdout)?;
        rustix::stdio::dup2_stderr(&self.stderr)
    }

    fn restore_limits(&self, start: &Start) -> Result<(), Errno> {
        let umask = start.umask.map_or(self.umask, Mode::from_raw_mode);
        rustix::process::umask(umask);
        if let Some((soft, hard)) = start.open_files {
            let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
            rustix::process::setrlimit(Resource::Nofile, limit)?;
        }
        if let Some((soft, hard)) = start.core {
            // The kernel uses the largest number for no limit.
            let limited = |bytes: u64| (bytes != u64::MAX).then_some(bytes);
            let limit = Rlimit { current: limited(soft), maximum: limited(hard) };
            rustix::process::setrlimit(Resource::Core, limit)?;
        }
        Ok(())
    }

    fn enter(&self, start: &Start) -> Result<(), Errno> {
        match (&start.directory, self.directory) {
            (Directory::Locked, Some(directory)) => rustix::process::fchdir(directory),
            (Directory::Locked, None) => Err(Errno::NOENT),
            (Directory::Path(path), _) => enter_path(path),
        }
    }
}

/// Enters a path that was resolved when the session was made: a link in it by now leads to another directory
/// (`ELOOP`).
fn enter_path(path: &Path) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(directory) => rustix::process::fchdir(directory),
        // A kernel before 5.6, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::process::chdir(path),
        Err(errno) => Err(errno),
    }
}

fn execute(arguments: &[OsString], environment: &[OsString]) -> (Stage, Errno) {
    let (Some(words), Some(variables)) = (texts(arguments), texts(environment)) else {
        return (Stage::Execute, Errno::INVAL);
    };
    let Some(program) = words.first() else { return (Stage::Execute, Errno::NOENT) };
    let mut worst = (Stage::Execute, Errno::NOENT);
    for place in places(OsStr::from_bytes(program.as_bytes()), environment) {
        let errno = raw::execute(&place, &words, &variables);
        let found = rustix::fs::access(place.as_c_str(), rustix::fs::Access::EXISTS).is_ok();
        match errno {
            Errno::NOEXEC if is_for_a_shell(&place) => return execute_by_shell(&place, &words, &variables),
            // Another folder of the path may have it.
            Errno::NOENT | Errno::NOTDIR if !found => {}
            Errno::ACCESS | Errno::NOENT | Errno::NOTDIR => worst = (Stage::ExecuteFound, errno),
            other => return (if found { Stage::ExecuteFound } else { Stage::Execute }, other),
        }
    }
    worst
}

/// Whether a file that the kernel cannot execute is a script. A shell would take anything else, such as a program
/// for another machine, for commands.
fn is_for_a_shell(place: &CString) -> bool {
    use std::io::Read;
    let mut beginning = Vec::new();
    let file = std::fs::File::open(OsStr::from_bytes(place.as_bytes()));
    let read = file.and_then(|file| file.take(program::BEGINNING).read_to_end(&mut beginning));
    read.is_ok() && program::is_for_a_shell(&beginning)
}

/// Runs a script without an interpreter line by the shell, as is usual.
fn execute_by_shell(place: &CString, arguments: &[CString], environment: &[CString]) -> (Stage, Errno) {
    let mut all = vec![SHELL.to_owned(), place.clone()];
    all.extend_from_slice(&arguments[1..]);
    (Stage::ExecuteFound, raw::execute(&SHELL.to_owned(), &all, environment))
}

/// Returns the paths at which a program may be.
fn places(program: &OsStr, environment: &[OsString]) -> Vec<CString> {
    let path = environment.iter().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    let path = path.map_or(OsStr::new(crate::USUAL_PATH), OsStr::from_bytes);
    let places = pinfold_kernel::program::places(program, path);
    places.filter_map(|place| CString::new(place.into_os_string().into_vec()).ok()).collect()
}

fn texts(all: &[OsString]) -> Option<Vec<CString>> {
    all.iter().map(|text| CString::new(text.clone().into_vec()).ok()).collect()
}

/// Returns what a child's failure message means.
pub(super) fn failure(saying: &[u8]) -> StartFailure {
    let errno =
        saying.get(1..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| i32::from_le_bytes(*bytes));
    let kind = Errno::from_raw_os_error(errno);
    let missing = matches!(kind, Errno::NOENT | Errno::NOTDIR);
    let stage = saying.first().copied().unwrap_or(0);
    match stage {
        _ if stage == Stage::Enter as u8 && missing => StartFailure::DirectoryMissing,
        _ if stage == Stage::Enter as u8 => StartFailure::DirectoryClosed { errno },
        _ if stage == Stage::Execute as u8 && missing => StartFailure::ProgramMissing,
        _ if stage == Stage::ExecuteFound as u8 => match kind {
            Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::NOENT | Errno::NOTDIR | Errno::ISDIR => {
                StartFailure::NotExecutable { errno }
            }
            _ => StartFailure::Refused { errno },
        },
        _ => StartFailure::Refused { errno },
    }
}

/// Returns the given environment, with pinfold's own variables replacing any others of these names.
fn environment(start: &Start, session: &str, notify: Option<&OsStr>, fence: u64) -> Vec<OsString> {
    const OURS: [&[u8]; 5] =
        [b"PINFOLD_SESSION=", b"PINFOLD_RUN=", b"PINFOLD_FENCE=", b"PINFOLD_SOCKET=", b"NOTIFY_SOCKET="];
    let foreign = |entry: &&OsString| !OURS.iter().any(|name| entry.as_bytes().starts_with(name));
    let mut all: Vec<OsString> = start.environment.iter().filter(foreign).cloned().collect();
    let mut add = |name: &str, value: &OsStr| {
        let mut entry = OsString::from(name);
        entry.push(value);
        all.push(entry);
    };
    add("PINFOLD_SESSION=", session.as_ref());
    add("PINFOLD_RUN=", start.run_id.as_ref());
    add("PINFOLD_FENCE=", fence.to_string().as_ref());
    if let Some(socket) = &start.socket {
        add("PINFOLD_SOCKET=", socket.as_os_str());
    }
    if let Some(notify) = notify {
        add("NOTIFY_SOCKET=", notify);
    }
    all
}
