//! A guest: a second process in a run, with its own terminal and its own end.

use crate::protocol::exited::{StartFailure, exit, exit_codes};
use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use crate::protocol::keep::path;
use crate::protocol::start::{
    Directory, JoinRights, Rights, Start, directory, size, texts, write_program, write_size,
};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_terminal::Size;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// How to start a guest.
#[derive(Clone, PartialEq, Eq)]
pub struct GuestStart {
    /// The run that it belongs to.
    pub run: RunNumber,
    /// Its number in the run.
    pub number: u64,
    /// The program and its arguments.
    pub arguments: Vec<OsString>,
    /// The complete environment, as `NAME=value`.
    pub environment: Vec<OsString>,
    /// Its working directory.
    pub directory: Directory,
    /// The size of its terminal.
    pub terminal: Size,
    /// Who besides people may join its terminal.
    pub joins: JoinRights,
    /// The run's name, as `PINFOLD_RUN`.
    pub run_id: String,
    /// The daemon's API socket, as `PINFOLD_SOCKET`.
    pub socket: Option<PathBuf>,
    /// Its limits and umask, like the run's.
    pub rights: Rights,
}

impl fmt::Debug for GuestStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may contain secrets: not even its names are printed here.
        f.debug_struct("Guest").field("run", &self.run).field("number", &self.number).finish_non_exhaustive()
    }
}

impl GuestStart {
    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
        fields.number(1, self.run.0).number(2, self.number);
        write_program(fields, &self.arguments, &self.environment, &self.directory);
        write_size(fields, self.terminal);
        self.joins.write(fields);
        if !self.run_id.is_empty() {
            fields.bytes(40, self.run_id.as_bytes());
        }
        if let Some(socket) = &self.socket {
            fields.bytes(9, socket.as_os_str().as_bytes());
        }
        self.rights.write(fields);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            number: fields.number(2)?,
            arguments: texts(fields, 3),
            environment: texts(fields, 4),
            directory: directory(fields),
            terminal: size(fields, 20, 21)?.unwrap_or_default(),
            joins: JoinRights::read(fields)?,
            run_id: fields
                .find(40)
                .map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned()),
            socket: fields.find(9).map(path),
            rights: Rights::read(fields)?,
        })
    }

    /// Returns what its process is told at its gate, in the form used for agents.
    pub(crate) fn order(self) -> Start {
        let Self { run, number: _, arguments, environment, directory, terminal, joins, .. } = self;
        let (run_id, socket, rights) = (self.run_id, self.socket, self.rights);
        let terminal = Some(terminal);
        let Rights { open_files, core, umask } = rights;
        Start {
            run,
            run_id,
            arguments,
            environment,
            directory,
            socket,
            open_files,
            core,
            umask,
            terminal,
            joins,
            ..Start::default()
        }
    }
}

/// What a shim tells a new daemon about the guest of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestStanding {
    /// The number of the latest guest.
    pub guest: u64,
    /// Whether the guest is alive.
    pub presence: Presence,
}

/// Whether a guest is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Alive, with this pid.
    Here(u32),
    /// Ended, in this way.
    Gone(Exit),
}

impl GuestStanding {
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
        fields.number(1, self.guest);
        match self.presence {
            Presence::Here(pid) => _ = fields.number(2, pid.into()),
            Presence::Gone(exit) => {
                let (how, number) = exit_codes(exit);
                fields.number(3, how).number(4, number);
            }
        }
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let presence = match fields.find(2) {
            Some(_) => Presence::Here(fields.small(2)?),
            None => Presence::Gone(exit(fields, 3, 4)?),
        };
        Ok(Self { guest: fields.number(1)?, presence })
    }
}

/// What a shim reports about a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestReport {
    /// The guest runs.
    Started {
        /// The guest's run.
        run: RunNumber,
        /// The guest's number.
        guest: u64,
        /// Its pid.
        pid: u32,
    },
    /// The guest has ended, or was never started.
    Ended {
        /// The guest's run.
        run: RunNumber,
        /// The guest's number.
        guest: u64,
        /// How it ended.
        exit: Exit,
        /// Why no process of it ever ran, if none did.
        why: Option<StartFailure>,
    },
}

impl GuestReport {
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
        match self {
            Self::Started { run, guest, pid } => {
                fields.number(1, run.0).number(2, guest).number(3, pid.into());
            }
            Self::Ended { run, guest, exit, why } => {
                let (how, number) = exit_codes(exit);
                fields.number(1, run.0).number(2, guest).number(3, how).number(4, number);
                if let Some(why) = why {
                    fields.group(5, |inner| why.write(inner));
                }
            }
        }
    }

    pub(crate) fn started(fields: Fields<'_>) -> Result<Self, FrameError> {
        let run = RunNumber(fields.number(1)?);
        Ok(Self::Started { run, guest: fields.number(2)?, pid: fields.small(3)? })
    }

    pub(crate) fn ended(fields: Fields<'_>) -> Result<Self, FrameError> {
        let run = RunNumber(fields.number(1)?);
        let why = match fields.find(5) {
            Some(bytes) => Some(StartFailure::read(fields.inside(bytes)?)?),
            None => None,
        };
        Ok(Self::Ended { run, guest: fields.number(2)?, exit: exit(fields, 3, 4)?, why })
    }
}
