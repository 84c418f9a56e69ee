//! The state of a shim, as it tells every new daemon.

use crate::protocol::exited::{Exited, wall};
use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use crate::protocol::guest::GuestStanding;
use crate::protocol::output::Position;
use crate::protocol::tape::{Can, TapeStanding};
use pinfold_core::ids::RunNumber;
use pinfold_core::life::Process;
use pinfold_core::time::Wall;

/// The state of a shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The version of the frames that it writes.
    pub version: u8,
    /// Its pid.
    pub shim: u32,
    /// The generation that it has accepted.
    pub generation: u64,
    /// What it keeps.
    pub keeping: Keeping,
    /// The unacknowledged exits, oldest first.
    pub exits: Vec<Exited>,
    /// The end of the log.
    pub log: Position,
    /// What it can do; nothing for a shim older than this field.
    pub can: Can,
    /// The tape of the run, if it has one.
    pub tape: Option<TapeStanding>,
    /// The latest guest of the run, if it had one.
    pub guest: Option<GuestStanding>,
}

/// What a shim keeps besides the locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Only the locks.
    Standing,
    /// A run for which it is not known yet whether exec succeeded; `Started` or `StartFailed` will follow.
    Starting {
        /// The run's number.
        run: RunNumber,
    },
    /// A run.
    Running {
        /// The run's number.
        run: RunNumber,
        /// Its agent.
        process: Process,
        /// When it started.
        at: Wall,
    },
}

impl Welcome {
    pub(crate) fn write(&self, f: &mut FieldWriter<'_>) {
        f.number(1, self.version.into()).number(2, self.shim.into()).number(3, self.generation);
        match self.keeping {
            Keeping::Standing => {}
            Keeping::Starting { run } => _ = f.number(4, run.0),
            Keeping::Running { run, process, at } => {
                f.group(5, |inner| {
                    inner.number(1, run.0).number(2, process.pid.into()).number(3, process.fence);
                    inner.number(4, at.0.cast_unsigned());
                });
            }
        }
        for exited in &self.exits {
            f.group(6, |inner| exited.write(inner));
        }
        f.number(7, self.log.0);
        self.can.write(f, 8);
        if let Some(tape) = &self.tape {
            f.group(9, |inner| tape.write(inner));
        }
        if let Some(guest) = self.guest {
            f.group(10, |inner| guest.write(inner));
        }
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let keeping = match (fields.optional_number(4)?, fields.find(5)) {
            (_, Some(bytes)) => {
                let inner = fields.inside(bytes)?;
                let run = RunNumber(inner.number(1)?);
                Keeping::Running { run, process: process(inner)?, at: wall(inner, 4)? }
            }
            (Some(run), None) => Keeping::Starting { run: RunNumber(run) },
            (None, None) => Keeping::Standing,
        };
        let mut exits = Vec::new();
        for bytes in fields.all(6) {
            exits.push(Exited::read(fields.inside(bytes)?)?);
        }
        Ok(Self {
            version: u8::try_from(fields.number(1)?).map_err(|_| fields.missing(1))?,
            shim: fields.small(2)?,
            generation: fields.number(3)?,
            keeping,
            exits,
            log: Position(fields.optional_number(7)?.unwrap_or(0)),
            can: Can::read(fields, 8)?,
            tape: match fields.find(9) {
                Some(bytes) => Some(TapeStanding::read(fields.inside(bytes)?)?),
                None => None,
            },
            guest: match fields.find(10) {
                Some(bytes) => Some(GuestStanding::read(fields.inside(bytes)?)?),
                None => None,
            },
        })
    }
}

pub(crate) fn process(fields: Fields<'_>) -> Result<Process, FrameError> {
    Ok(Process { pid: fields.small(2)?, fence: fields.number(3)? })
}
