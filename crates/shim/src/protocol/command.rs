//! What a daemon tells a shim.

use crate::protocol::frame::{Fields, Frame, FrameError, Writer, write};
use pinfold_core::ids::{MessageId, RunNumber};
use pinfold_core::time::Boot;
use pinfold_terminal::Size;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// Something for a shim to do. Repeating one is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The first word to a new shim, with the descriptors of the locks: what it keeps, and where.
    Keep(Box<Keep>),
    /// The first word on every connection.
    Hello {
        /// The daemon's: one more at each of its starts. A higher one replaces older connections.
        generation: u64,
    },
    /// The session is stored: from now on the shim outlives its parent.
    Go,
    /// Start an agent.
    Start(Box<Start>),
    /// End the whole tree of a run: SIGTERM, grace, SIGKILL. Asked again, the shorter grace counts.
    Stop {
        /// Which.
        run: RunNumber,
        /// Time before SIGKILL.
        grace: Duration,
    },
    /// Send SIGINT to the agent.
    Interrupt {
        /// Of which run.
        run: RunNumber,
    },
    /// Write to the agent's stdin. The same message and number twice is written once.
    Input {
        /// To which run.
        run: RunNumber,
        /// Which message.
        message: MessageId,
        /// Which delivery of it, among all of the session.
        attempt: u32,
        /// What to write.
        bytes: Vec<u8>,
        /// Whether the agent says by a line when its turn is over.
        says_done: bool,
    },
    /// Close the agent's stdin behind what is still to be written.
    CloseInput {
        /// Of which run.
        run: RunNumber,
    },
    /// Give the locks back and leave. Without effect while a run lives.
    Release,
    /// End the tree at a moment of the boot clock, and leave; replaces the last such moment.
    DieAt {
        /// When; `None` takes it back.
        at: Option<Boot>,
        /// Time between SIGTERM and SIGKILL then.
        grace: Duration,
    },
    /// The exits up to this run are stored.
    Ack {
        /// The last of them.
        run: RunNumber,
    },
    /// Whether to send the agent's output as it comes; a shim does until told otherwise.
    Follow {
        /// Whether.
        on: bool,
    },
    /// Listen for newcomers, also where the socket was removed meanwhile.
    Listen,
}

/// What a new shim keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The session's name, for people and as `PINFOLD_SESSION`.
    pub session: String,
    /// Where to listen for daemons; where that cannot be, beside the records.
    pub listen: PathBuf,
    /// From when on to listen there.
    pub listens: Listens,
    /// The file of exit records.
    pub records: PathBuf,
    /// The log; older parts of it get `.1`, `.2` ... appended.
    pub log: PathBuf,
    /// The locks; the first is the session's own.
    pub locks: Vec<Lock>,
    /// Whether its runs outlive whoever started it.
    pub tie: Tie,
    /// Whose are the standard streams of its agents.
    pub streams: Streams,
    /// A folder that goes when the shim leaves and whoever started it is gone.
    pub scratch: Option<PathBuf>,
}

/// From when on a shim listens for others than the one who started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listens {
    /// From its beginning.
    #[default]
    AtOnce,
    /// When it has lost its daemon, or has a terminal that somebody may want to see. Most shims never do, and a
    /// thousand sockets can be a seventh of a start.
    Late,
}

/// Whose are the standard streams of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streams {
    /// The shim's: input comes by command, output goes to the log.
    #[default]
    Kept,
    /// Those of whoever started the shim: the last three descriptors that came along.
    Given,
}

/// Whether runs outlive whoever started their shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tie {
    /// They do: daemons come and go.
    #[default]
    Free,
    /// They do not: when the first connection ends, the run is stopped and the shim leaves.
    ToParent,
}

/// One lock that is handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Its folder.
    pub folder: PathBuf,
    /// What [`pinfold_lock::Guard::lend`] describes, as JSON.
    pub description: Vec<u8>,
    /// How many of the descriptors that came along belong to it.
    pub descriptors: usize,
}

/// How to start an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Start {
    /// Which run. A number that is not above all earlier ones starts nothing.
    pub run: RunNumber,
    /// The run's name, as `PINFOLD_RUN` and in the locks.
    pub run_id: String,
    /// The program and its arguments; a program without a slash is looked for in the PATH of `environment`.
    pub arguments: Vec<OsString>,
    /// The complete environment, as `NAME=value`.
    pub environment: Vec<OsString>,
    /// Where it starts.
    pub directory: Directory,
    /// What it reads.
    pub stdin: Stdin,
    /// The bounds of the log.
    pub log: LogLimits,
    /// The daemon's API socket, as `PINFOLD_SOCKET`.
    pub socket: Option<PathBuf>,
    /// How its tree is held together.
    pub contain: Contain,
    /// Whether it is given the lock descriptors, at numbers from 100 on.
    pub give_locks: bool,
    /// Soft and hard limit of open files; `None` leaves what the shim has.
    pub open_files: Option<(u64, u64)>,
    /// Soft and hard limit of a core file; `None` leaves what the shim has.
    pub core: Option<(u64, u64)>,
    /// Its umask; `None` leaves what the shim was started with.
    pub umask: Option<u32>,
    /// The grace when the shim itself has to stop it (SIGTERM to the shim).
    pub grace: Duration,
    /// Gives it a terminal of this size instead of pipes.
    pub terminal: Option<Size>,
    /// Whether another run is likely to follow at once when this one ends by itself: the shim makes ready for it.
    pub repeats: bool,
    /// Whether the agent says by a line when a turn is over: what it says before its first one is noticed too.
    pub says_done: bool,
    /// Who beside people may join its terminal.
    pub joins: Joins,
}

/// Who beside people may join a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Joins {
    /// Those that are confined.
    pub confined: bool,
    /// Those of a run.
    pub runs: bool,
}

/// Where an agent starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// In the directory that is locked, wherever its path leads by now.
    Locked,
    /// In the directory at a path.
    Path(PathBuf),
}

/// What an agent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: end of file at once.
    Null,
    /// A pipe that [`Command::Input`] writes to.
    Pipe,
}

/// How a tree is held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contain {
    /// By the sub-reaper alone.
    Reaper,
    /// In a control group too, where the shim may make one.
    Group,
    /// As `Group`, with a count of out-of-memory kills also where that costs a slow move (control groups v1).
    GroupAndMemory,
}

/// The bounds of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// A file that has grown to this gets a successor.
    pub file_bytes: u64,
    /// How many files are kept, the current one included.
    pub files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { file_bytes: 8 << 20, files: 2 }
    }
}

impl Default for Start {
    fn default() -> Self {
        Self {
            run: RunNumber(1),
            run_id: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: Directory::Path("/".into()),
            stdin: Stdin::Pipe,
            log: LogLimits::default(),
            socket: None,
            contain: Contain::Group,
            give_locks: false,
            open_files: None,
            core: None,
            umask: None,
            grace: Duration::from_secs(10),
            terminal: None,
            repeats: false,
            says_done: false,
            joins: Joins::default(),
        }
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may carry secrets: not even its names are printed here.
        f.debug_struct("Start").field("run", &self.run).field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

mod kind {
    pub(super) const KEEP: u8 = 1;
    pub(super) const HELLO: u8 = 2;
    pub(super) const GO: u8 = 3;
    pub(super) const START: u8 = 4;
    pub(super) const STOP: u8 = 5;
    pub(super) const INTERRUPT: u8 = 6;
    pub(super) const INPUT: u8 = 7;
    pub(super) const CLOSE_INPUT: u8 = 8;
    pub(super) const RELEASE: u8 = 9;
    pub(super) const DIE_AT: u8 = 10;
    pub(super) const ACK: u8 = 11;
    pub(super) const FOLLOW: u8 = 12;
    pub(super) const LISTEN: u8 = 13;
}

impl Command {
    /// Appends the command as one frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Keep(keep) => write(out, kind::KEEP, |fields| keep.write(fields)),
            Self::Hello { generation } => write(out, kind::HELLO, |f| _ = f.number(1, *generation)),
            Self::Go => write(out, kind::GO, |_| ()),
            Self::Start(start) => start.encode(out),
            Self::Stop { run, grace } => {
                write(out, kind::STOP, |f| _ = f.number(1, run.0).number(2, millis(*grace)));
            }
            Self::Interrupt { run } => write(out, kind::INTERRUPT, |f| _ = f.number(1, run.0)),
            Self::Input { run, message, attempt, bytes, says_done } => write(out, kind::INPUT, |f| {
                f.number(1, run.0).wide(2, message.0).number(3, (*attempt).into()).bytes(4, bytes);
                f.flag(5, *says_done);
            }),
            Self::CloseInput { run } => write(out, kind::CLOSE_INPUT, |f| _ = f.number(1, run.0)),
            Self::Release => write(out, kind::RELEASE, |_| ()),
            Self::DieAt { at, grace } => write(out, kind::DIE_AT, |f| {
                f.number(1, at.map_or(0, |at| at.0)).number(2, millis(*grace));
            }),
            Self::Ack { run } => write(out, kind::ACK, |f| _ = f.number(1, run.0)),
            Self::Follow { on } => write(out, kind::FOLLOW, |f| _ = f.flag(1, *on)),
            Self::Listen => write(out, kind::LISTEN, |_| ()),
        }
    }

    /// Reads a command; nothing when its kind is not known, which is passed over.
    ///
    /// # Errors
    /// When a field without which it means nothing is missing.
    pub fn decode(frame: &Frame<'_>) -> Result<Option<Self>, FrameError> {
        let fields = frame.fields;
        let run = |tag| fields.number(tag).map(RunNumber);
        Ok(Some(match frame.kind {
            kind::KEEP => Self::Keep(Box::new(Keep::read(fields)?)),
            kind::HELLO => Self::Hello { generation: fields.number(1)? },
            kind::GO => Self::Go,
            kind::START => Self::Start(Box::new(Start::read(fields)?)),
            kind::STOP => Self::Stop { run: run(1)?, grace: duration(fields, 2)? },
            kind::INTERRUPT => Self::Interrupt { run: run(1)? },
            kind::INPUT => Self::Input {
                run: run(1)?,
                message: MessageId(fields.wide(2)?),
                attempt: fields.small(3)?,
                bytes: fields.bytes(4)?.to_vec(),
                says_done: fields.flag(5)?,
            },
            kind::CLOSE_INPUT => Self::CloseInput { run: run(1)? },
            kind::RELEASE => Self::Release,
            kind::DIE_AT => {
                let at = Some(fields.number(1)?).filter(|at| *at != 0).map(Boot);
                Self::DieAt { at, grace: duration(fields, 2)? }
            }
            kind::ACK => Self::Ack { run: run(1)? },
            kind::FOLLOW => Self::Follow { on: fields.flag(1)? },
            kind::LISTEN => Self::Listen,
            _ => return Ok(None),
        }))
    }
}

impl Keep {
    fn write(&self, fields: &mut Writer<'_>) {
        fields.bytes(1, self.session.as_bytes());
        fields.bytes(2, self.listen.as_os_str().as_bytes());
        fields.bytes(3, self.records.as_os_str().as_bytes());
        fields.bytes(4, self.log.as_os_str().as_bytes());
        for lock in &self.locks {
            fields.group(5, |f| {
                f.bytes(1, lock.folder.as_os_str().as_bytes()).bytes(2, &lock.description);
                f.number(3, lock.descriptors as u64);
            });
        }
        fields.flag(6, self.tie == Tie::ToParent);
        if self.streams == Streams::Given {
            fields.flag(7, true);
        }
        if let Some(scratch) = &self.scratch {
            fields.bytes(8, scratch.as_os_str().as_bytes());
        }
        if self.listens == Listens::Late {
            fields.flag(9, true);
        }
    }

    fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let mut locks = Vec::new();
        for bytes in fields.all(5) {
            let lock = fields.inside(bytes)?;
            locks.push(Lock {
                folder: path(lock.bytes(1)?),
                description: lock.bytes(2)?.to_vec(),
                descriptors: lock.small(3)? as usize,
            });
        }
        Ok(Self {
            session: fields.text(1)?,
            listen: path(fields.bytes(2)?),
            records: path(fields.bytes(3)?),
            log: path(fields.bytes(4)?),
            locks,
            tie: if fields.flag(6)? { Tie::ToParent } else { Tie::Free },
            streams: if fields.flag(7)? { Streams::Given } else { Streams::Kept },
            scratch: fields.find(8).map(path),
            listens: if fields.flag(9)? { Listens::Late } else { Listens::AtOnce },
        })
    }
}

impl Start {
    /// Appends the command that orders this start.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        write(out, kind::START, |fields| self.write(fields));
    }

    fn write(&self, fields: &mut Writer<'_>) {
        fields.number(1, self.run.0).bytes(2, self.run_id.as_bytes());
        for argument in &self.arguments {
            fields.bytes(3, argument.as_bytes());
        }
        for entry in &self.environment {
            fields.bytes(4, entry.as_bytes());
        }
        if let Directory::Path(path) = &self.directory {
            fields.bytes(5, path.as_os_str().as_bytes());
        }
        fields.flag(6, self.stdin == Stdin::Null);
        fields.number(7, self.log.file_bytes).number(8, self.log.files.into());
        if let Some(socket) = &self.socket {
            fields.bytes(9, socket.as_os_str().as_bytes());
        }
        fields.number(10, self.contain.code()).flag(11, self.give_locks);
        if let Some((soft, hard)) = self.open_files {
            fields.number(12, soft).number(13, hard);
        }
        if let Some(umask) = self.umask {
            fields.number(14, umask.into());
        }
        fields.number(15, millis(self.grace));
        if let Some(size) = self.terminal {
            fields.number(20, size.rows().into()).number(21, size.columns().into());
        }
        if self.repeats {
            fields.flag(22, true);
        }
        if self.says_done {
            fields.flag(23, true);
        }
        if self.joins.confined {
            fields.flag(24, true);
        }
        if self.joins.runs {
            fields.flag(25, true);
        }
        if let Some((soft, hard)) = self.core {
            fields.number(30, soft).number(31, hard);
        }
    }

    fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let plain = Self::default();
        let texts = |tag| fields.all(tag).map(|b| OsStr::from_bytes(b).to_owned()).collect();
        let limits = (fields.optional_number(12)?, fields.optional_number(13)?);
        let core = (fields.optional_number(30)?, fields.optional_number(31)?);
        let umask = fields.optional_number(14)?;
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            run_id: fields.text(2)?,
            arguments: texts(3),
            environment: texts(4),
            directory: fields.find(5).map_or(Directory::Locked, |bytes| Directory::Path(path(bytes))),
            stdin: if fields.flag(6)? { Stdin::Null } else { Stdin::Pipe },
            log: LogLimits {
                file_bytes: fields.optional_number(7)?.unwrap_or(plain.log.file_bytes),
                files: fields.optional_number(8)?.map_or(plain.log.files, |n| n.min(1000) as u32),
            },
            socket: fields.find(9).map(path),
            contain: fields.optional_number(10)?.map_or(plain.contain, Contain::from_code),
            give_locks: fields.flag(11)?,
            open_files: limits.0.zip(limits.1),
            core: core.0.zip(core.1),
            umask: umask.map(|umask| umask as u32 & 0o777),
            grace: fields.optional_number(15)?.map_or(plain.grace, Duration::from_millis),
            terminal: size(fields, 20, 21)?,
            repeats: fields.flag(22)?,
            says_done: fields.flag(23)?,
            joins: Joins { confined: fields.flag(24)?, runs: fields.flag(25)? },
        })
    }
}

impl Contain {
    fn code(self) -> u64 {
        match self {
            Self::Reaper => 0,
            Self::Group => 1,
            Self::GroupAndMemory => 2,
        }
    }

    fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Reaper,
            2 => Self::GroupAndMemory,
            _ => Self::Group,
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn duration(fields: Fields<'_>, tag: u8) -> Result<Duration, FrameError> {
    fields.number(tag).map(Duration::from_millis)
}

/// A size of a terminal, if there is one.
pub(crate) fn size(fields: Fields<'_>, rows: u8, columns: u8) -> Result<Option<Size>, FrameError> {
    let count = |tag| Ok(fields.optional_number(tag)?.map(|n| u16::try_from(n).unwrap_or(u16::MAX)));
    Ok(count(rows)?.zip(count(columns)?).map(|(rows, columns)| Size::new(rows, columns)))
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
