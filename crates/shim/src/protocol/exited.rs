//! The end of a run, as it is recorded and reported: one encoding for both disk and wire.

use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use crate::protocol::output::Position;
use crate::protocol::start::{duration, millis};
use crate::protocol::tape::TapeEnd;
use pinfold_core::exit::{Ended, Exit, ExitNotice};
use pinfold_core::ids::RunNumber;
use pinfold_core::inbox::Read;
use pinfold_core::time::Wall;
use rustix::io::Errno;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exited {
    /// The run's number.
    pub run: RunNumber,
    /// How it ended; the adapter fills in `recognised`.
    pub ended: Ended,
    /// Why no process of it ever ran, if none did.
    pub failure: Option<StartFailure>,
    /// The agent's pid; 0 if there was none.
    pub pid: u32,
    /// The fence of the session lock.
    pub fence: u64,
    /// When it ended.
    pub at: Wall,
    /// Where its output ends in the log.
    pub log: Position,
    /// What it left on the tape, if it had one: its end is not judged before the tape was read up to there.
    pub tape: Option<TapeEnd>,
}

/// Why a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFailure {
    /// There is no such program.
    ProgramMissing,
    /// The program exists but cannot be executed.
    NotExecutable {
        /// The kernel's error: `ENOENT` if the program exists and its interpreter does not.
        errno: i32,
    },
    /// There is no such directory.
    DirectoryMissing,
    /// The directory exists but cannot be entered.
    DirectoryClosed {
        /// The kernel's error.
        errno: i32,
    },
    /// The system refused for now.
    Refused {
        /// The kernel's error.
        errno: i32,
    },
    /// A later run has been started already; nothing was tried.
    Outdated {
        /// The latest run.
        last: RunNumber,
    },
    /// Another run is alive; nothing was tried.
    Occupied {
        /// The run that is alive.
        run: RunNumber,
    },
    /// Too many exits are unacknowledged; nothing was tried.
    RecordsFull,
}

impl StartFailure {
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
        match self {
            Self::ProgramMissing => fields.number(1, 1),
            Self::NotExecutable { errno } => fields.number(1, 2).number(2, errno.unsigned_abs().into()),
            Self::DirectoryMissing => fields.number(1, 3),
            Self::Refused { errno } => fields.number(1, 4).number(2, errno.unsigned_abs().into()),
            Self::Outdated { last } => fields.number(1, 5).number(3, last.0),
            Self::Occupied { run } => fields.number(1, 6).number(3, run.0),
            Self::RecordsFull => fields.number(1, 7),
            Self::DirectoryClosed { errno } => fields.number(1, 8).number(2, errno.unsigned_abs().into()),
        };
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let errno = |unsaid| Ok(fields.optional_number(2)?.map_or(unsaid, |errno| errno as i32));
        Ok(match fields.number(1)? {
            1 => Self::ProgramMissing,
            // Earlier shims do not say which.
            2 => Self::NotExecutable { errno: errno(Errno::ACCESS.raw_os_error())? },
            3 => Self::DirectoryMissing,
            5 => Self::Outdated { last: RunNumber(fields.number(3)?) },
            6 => Self::Occupied { run: RunNumber(fields.number(3)?) },
            7 => Self::RecordsFull,
            8 => Self::DirectoryClosed { errno: errno(0)? },
            // A reason that is unknown here is still a refusal.
            _ => Self::Refused { errno: errno(0)? },
        })
    }
}

impl Exited {
    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
        fields.number(1, self.run.0);
        let (how, number) = exit_codes(self.ended.exit);
        fields.number(2, how).number(3, number);
        if let Some(said) = self.ended.said {
            fields.number(4, said_code(said));
        }
        fields.flag(5, self.ended.oom_killed).flag(6, self.ended.forced);
        fields.number(7, millis(self.ended.lived));
        if let Some(failure) = self.failure {
            fields.group(8, |inner| failure.write(inner));
        }
        fields.number(9, self.pid.into()).number(10, self.fence);
        fields.number(11, self.at.0.cast_unsigned()).number(12, self.log.0);
        if let Some(tape) = self.tape {
            tape.write(fields);
        }
        fields.flag(16, self.ended.read == Read::Never);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let failure = match fields.find(8) {
            Some(bytes) => Some(StartFailure::read(fields.inside(bytes)?)?),
            None => None,
        };
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            ended: Ended {
                exit: exit(fields, 2, 3)?,
                said: fields.optional_number(4)?.and_then(said),
                recognised: None,
                oom_killed: fields.flag(5)?,
                forced: fields.flag(6)?,
                lived: duration(fields, 7)?,
                read: if fields.flag(16)? { Read::Never } else { Read::Maybe },
                at: None,
                last_line: None,
            },
            failure,
            pid: fields.small(9)?,
            fence: fields.number(10)?,
            at: wall(fields, 11)?,
            log: Position(fields.optional_number(12)?.unwrap_or(0)),
            tape: TapeEnd::read(fields)?,
        })
    }
}

/// Encodes how a process ended, in two numbers.
pub(crate) fn exit_codes(exit: Exit) -> (u64, u64) {
    let (how, number) = match exit {
        Exit::Code(code) => (1, code),
        Exit::Signal(signal) => (2, signal),
        Exit::ShimLost => (3, 0),
        Exit::MachineLost => (4, 0),
        Exit::NeverStarted => (5, 0),
        Exit::AfterBackup => (6, 0),
    };
    (how, u64::from(number.cast_unsigned()))
}

pub(crate) fn exit(fields: Fields<'_>, how: u8, number: u8) -> Result<Exit, FrameError> {
    let number = fields.small(number)?.cast_signed();
    Ok(match fields.number(how)? {
        1 => Exit::Code(number),
        2 => Exit::Signal(number),
        3 => Exit::ShimLost,
        4 => Exit::MachineLost,
        5 => Exit::NeverStarted,
        6 => Exit::AfterBackup,
        _ => return Err(fields.missing(how)),
    })
}

pub(crate) fn said_code(said: ExitNotice) -> u64 {
    match said {
        ExitNotice::Drained => 1,
        ExitNotice::Contended => 2,
        ExitNotice::Hopeless => 3,
        ExitNotice::Limited => 4,
    }
}

pub(crate) fn said(code: u64) -> Option<ExitNotice> {
    match code {
        1 => Some(ExitNotice::Drained),
        2 => Some(ExitNotice::Contended),
        3 => Some(ExitNotice::Hopeless),
        4 => Some(ExitNotice::Limited),
        _ => None,
    }
}

pub(crate) fn wall(fields: Fields<'_>, tag: u8) -> Result<Wall, FrameError> {
    fields.number(tag).map(|number| Wall(number.cast_signed()))
}
