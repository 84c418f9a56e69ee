//! How to start an agent.

use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use crate::protocol::keep::path;
use crate::protocol::output::Position;
use pinfold_core::ids::RunNumber;
use pinfold_terminal::Size;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// How to start an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct Start {
    /// The run's number. A number that is not above all earlier ones starts nothing.
    pub run: RunNumber,
    /// The run's name, as `PINFOLD_RUN` and in the locks.
    pub run_id: String,
    /// The program and its arguments; a program without a slash is looked for in the PATH of `environment`.
    pub arguments: Vec<OsString>,
    /// The complete environment, as `NAME=value`.
    pub environment: Vec<OsString>,
    /// Its working directory.
    pub directory: Directory,
    /// What the agent reads.
    pub stdin: Stdin,
    /// The limits of the log.
    pub log: LogLimits,
    /// The daemon's API socket, as `PINFOLD_SOCKET`.
    pub socket: Option<PathBuf>,
    /// How its tree is held together.
    pub contain: Contain,
    /// Whether the agent gets the lock descriptors, at numbers from 100 on.
    pub give_locks: bool,
    /// Soft and hard limit of open files; `None` keeps the shim's.
    pub open_files: Option<(u64, u64)>,
    /// Soft and hard limit of a core file; `None` keeps the shim's.
    pub core: Option<(u64, u64)>,
    /// Its umask; `None` keeps the one that the shim was started with.
    pub umask: Option<u32>,
    /// The grace if the shim itself has to stop it (SIGTERM to the shim).
    pub grace: Duration,
    /// Gives it a terminal of this size instead of pipes.
    pub terminal: Option<Size>,
    /// Whether another run is likely to follow at once if this one ends by itself; the shim then prepares for
    /// it.
    pub repeats: bool,
    /// Whether the agent prints a line when a turn is over; such lines before its first turn are noticed too.
    pub says_done: bool,
    /// Who besides people may join its terminal.
    pub joins: JoinRights,
    /// Writes its output and what is said to it to the tape; otherwise its output goes to the log. A run with
    /// a terminal, or with the caller's streams, has no tape.
    pub tape: Option<TapeLimits>,
}

/// How a run uses the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapeLimits {
    /// The agent waits if more bytes than this are on the tape unheard.
    pub unheard: u64,
    /// The highest position that the daemon has stored; the tape does not continue below it.
    pub floor: Position,
}

/// Who besides people may join a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JoinRights {
    /// Confined clients may join.
    pub confined: bool,
    /// Clients that are part of a run may join.
    pub runs: bool,
}

/// What a process of a run may use, besides its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// Soft and hard limit of open files; `None` keeps the shim's.
    pub open_files: Option<(u64, u64)>,
    /// Soft and hard limit of a core file; `None` keeps the shim's.
    pub core: Option<(u64, u64)>,
    /// Its umask; `None` keeps the one that the shim was started with.
    pub umask: Option<u32>,
}

/// Where an agent starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// In the locked directory, wherever its path leads by now.
    Locked,
    /// In the directory at a path.
    Path(PathBuf),
}

/// What an agent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: end of file at once.
    Null,
    /// A pipe that [`crate::Command::Input`] writes to.
    Pipe,
}

/// How a tree is held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contain {
    /// By the subreaper alone.
    Reaper,
    /// In a control group too, if the shim may make one.
    Group,
    /// Like `Group`, and counts out-of-memory kills even if that costs a slow move (control groups v1).
    GroupAndMemory,
}

/// The limits of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// A file of this size gets a successor.
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
            joins: JoinRights::default(),
            tape: None,
        }
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may contain secrets: not even its names are printed here.
        f.debug_struct("Start").field("run", &self.run).field("run_id", &self.run_id).finish_non_exhaustive()
    }
}

impl Start {
    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
        fields.number(1, self.run.0).bytes(2, self.run_id.as_bytes());
        write_program(fields, &self.arguments, &self.environment, &self.directory);
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
            write_size(fields, size);
        }
        if self.repeats {
            fields.flag(22, true);
        }
        if self.says_done {
            fields.flag(23, true);
        }
        self.joins.write(fields);
        if let Some(tape) = self.tape {
            fields.number(26, tape.unheard).number(27, tape.floor.0);
        }
        if let Some((soft, hard)) = self.core {
            fields.number(30, soft).number(31, hard);
        }
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let plain = Self::default();
        let Rights { open_files, core, umask } = Rights::read(fields)?;
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            run_id: fields.text(2)?,
            arguments: texts(fields, 3),
            environment: texts(fields, 4),
            directory: directory(fields),
            stdin: if fields.flag(6)? { Stdin::Null } else { Stdin::Pipe },
            log: LogLimits {
                file_bytes: fields.optional_number(7)?.unwrap_or(plain.log.file_bytes),
                files: fields.optional_number(8)?.map_or(plain.log.files, |n| n.min(1000) as u32),
            },
            socket: fields.find(9).map(path),
            contain: fields.optional_number(10)?.map_or(plain.contain, Contain::from_code),
            give_locks: fields.flag(11)?,
            open_files,
            core,
            umask,
            grace: fields.optional_number(15)?.map_or(plain.grace, Duration::from_millis),
            terminal: size(fields, 20, 21)?,
            tape: TapeLimits::read(fields)?,
            repeats: fields.flag(22)?,
            says_done: fields.flag(23)?,
            joins: JoinRights::read(fields)?,
        })
    }
}

impl Rights {
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
        if let Some((soft, hard)) = self.open_files {
            fields.number(12, soft).number(13, hard);
        }
        if let Some(umask) = self.umask {
            fields.number(14, umask.into());
        }
        if let Some((soft, hard)) = self.core {
            fields.number(30, soft).number(31, hard);
        }
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let limits = (fields.optional_number(12)?, fields.optional_number(13)?);
        let core = (fields.optional_number(30)?, fields.optional_number(31)?);
        let umask = fields.optional_number(14)?.map(|umask| umask as u32 & 0o777);
        Ok(Self { open_files: limits.0.zip(limits.1), core: core.0.zip(core.1), umask })
    }
}

impl TapeLimits {
    fn read(fields: Fields<'_>) -> Result<Option<Self>, FrameError> {
        let Some(unheard) = fields.optional_number(26)? else { return Ok(None) };
        Ok(Some(Self { unheard, floor: Position(fields.optional_number(27)?.unwrap_or(0)) }))
    }
}

impl JoinRights {
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
        fields.flag(24, self.confined).flag(25, self.runs);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self { confined: fields.flag(24)?, runs: fields.flag(25)? })
    }
}

/// Writes what a process is made of, with the same tags wherever one is started.
pub(crate) fn write_program(
    fields: &mut FieldWriter<'_>,
    arguments: &[OsString],
    environment: &[OsString],
    directory: &Directory,
) {
    for argument in arguments {
        fields.bytes(3, argument.as_bytes());
    }
    for entry in environment {
        fields.bytes(4, entry.as_bytes());
    }
    if let Directory::Path(path) = directory {
        fields.bytes(5, path.as_os_str().as_bytes());
    }
}

pub(crate) fn write_size(fields: &mut FieldWriter<'_>, size: Size) {
    fields.number(20, size.rows().into()).number(21, size.columns().into());
}

pub(crate) fn texts(fields: Fields<'_>, tag: u8) -> Vec<OsString> {
    fields.all(tag).map(|bytes| OsStr::from_bytes(bytes).to_owned()).collect()
}

pub(crate) fn directory(fields: Fields<'_>) -> Directory {
    fields.find(5).map_or(Directory::Locked, |bytes| Directory::Path(path(bytes)))
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

/// Reads a terminal's size, if there is one.
pub(crate) fn size(fields: Fields<'_>, rows: u8, columns: u8) -> Result<Option<Size>, FrameError> {
    let count = |tag| Ok(fields.optional_number(tag)?.map(|n| u16::try_from(n).unwrap_or(u16::MAX)));
    Ok(count(rows)?.zip(count(columns)?).map(|(rows, columns)| Size::new(rows, columns)))
}
