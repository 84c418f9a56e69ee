//! A guest: a second process of a run, with a terminal and an end of its own.

use crate::protocol::exited::{exit, exit_codes};
use crate::protocol::frame::{Fields, FrameError, Writer};
use crate::protocol::start::{Directory, Joins, directory, size, texts, write_program, write_size};
use pinfold_core::exit::Exit;
use pinfold_core::ids::RunNumber;
use pinfold_terminal::Size;
use std::ffi::OsString;
use std::fmt;

/// How to start a guest.
#[derive(Clone, PartialEq, Eq)]
pub struct Guest {
    /// Of which run.
    pub run: RunNumber,
    /// Its number in the run.
    pub number: u64,
    /// The program and its arguments.
    pub arguments: Vec<OsString>,
    /// The complete environment, as `NAME=value`.
    pub environment: Vec<OsString>,
    /// Where it starts.
    pub directory: Directory,
    /// The size of its terminal.
    pub terminal: Size,
    /// Who beside people may join its terminal.
    pub joins: Joins,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may carry secrets: not even its names are printed here.
        f.debug_struct("Guest").field("run", &self.run).field("number", &self.number).finish_non_exhaustive()
    }
}

impl Guest {
    pub(crate) fn write(&self, fields: &mut Writer<'_>) {
        fields.number(1, self.run.0).number(2, self.number);
        write_program(fields, &self.arguments, &self.environment, &self.directory);
        write_size(fields, self.terminal);
        self.joins.write(fields);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            number: fields.number(2)?,
            arguments: texts(fields, 3),
            environment: texts(fields, 4),
            directory: directory(fields),
            terminal: size(fields, 20, 21)?.unwrap_or_default(),
            joins: Joins::read(fields)?,
        })
    }
}

/// What a shim says of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestReport {
    /// It runs.
    Started {
        /// Of which run.
        run: RunNumber,
        /// Which guest.
        guest: u64,
        /// Its pid.
        pid: u32,
    },
    /// It has ended, or was never started.
    Ended {
        /// Of which run.
        run: RunNumber,
        /// Which guest.
        guest: u64,
        /// How.
        exit: Exit,
    },
}

impl GuestReport {
    pub(crate) fn write(self, fields: &mut Writer<'_>) {
        match self {
            Self::Started { run, guest, pid } => {
                fields.number(1, run.0).number(2, guest).number(3, pid.into());
            }
            Self::Ended { run, guest, exit } => {
                let (how, number) = exit_codes(exit);
                fields.number(1, run.0).number(2, guest).number(3, how).number(4, number);
            }
        }
    }

    pub(crate) fn started(fields: Fields<'_>) -> Result<Self, FrameError> {
        let run = RunNumber(fields.number(1)?);
        Ok(Self::Started { run, guest: fields.number(2)?, pid: fields.small(3)? })
    }

    pub(crate) fn ended(fields: Fields<'_>) -> Result<Self, FrameError> {
        let run = RunNumber(fields.number(1)?);
        Ok(Self::Ended { run, guest: fields.number(2)?, exit: exit(fields, 3, 4)? })
    }
}
