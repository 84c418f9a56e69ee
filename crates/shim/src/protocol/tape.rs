//! What a shim says of the tape: how far it has grown, what was said, and whether it goes on.

use crate::protocol::frame::{Fields, FrameError, Writer};
use crate::protocol::output::Position;
use crate::protocol::say::{SayNumber, SayRefused};
use pinfold_core::ids::RunNumber;

/// What a shim says of the tape of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapeReport {
    /// It has grown. Of several such words only the last one is sent.
    Grown {
        /// For which run.
        run: RunNumber,
        /// Where it ends now.
        end: Position,
    },
    /// What was said to the agent: the answer to a [`crate::Say`] that was taken, or whose number is not the next,
    /// and said again when more of it has been written.
    Said {
        /// Of which run.
        run: RunNumber,
        /// How far.
        said: SaidUpTo,
    },
    /// Something was not said.
    Refused {
        /// Of which run.
        run: RunNumber,
        /// Which.
        number: SayNumber,
        /// Why.
        why: SayRefused,
    },
    /// What the agent prints is written again, or is not.
    State {
        /// Of which run.
        run: RunNumber,
        /// Which of them.
        flow: Flow,
    },
}

/// How far what is said in a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaidUpTo {
    /// The last one that is on the tape.
    pub said: SayNumber,
    /// The last one that the agent's standard input has taken whole.
    pub written: SayNumber,
}

/// Whether what an agent prints is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// It is.
    #[default]
    Flows,
    /// Too much on the tape is not heard: the agent waits.
    Full,
    /// The tape cannot be written: the agent waits.
    Broken {
        /// What the kernel said.
        errno: i32,
    },
}

/// How things stand with the tape of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapeStanding {
    /// Which run.
    pub run: RunNumber,
    /// The first position that is still there.
    pub first: Position,
    /// Where it ends.
    pub end: Position,
    /// Up to where it was heard.
    pub heard: Position,
    /// What was said in this run.
    pub said: SaidUpTo,
    /// Whether what the agent prints is read.
    pub flow: Flow,
}

/// What a run that had a tape left on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapeEnd {
    /// Where the tape ended behind all that it printed.
    pub end: Position,
    /// What was said in it.
    pub said: SaidUpTo,
}

/// What a shim can do beside what every shim can. Nothing is asked of one that did not say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Can {
    /// Write a tape, and say things by number.
    pub tape: bool,
    /// Take more locks while a run lives.
    pub hold: bool,
    /// Start a guest.
    pub guest: bool,
    /// Read a fleet's deadline from a page.
    pub page: bool,
}

impl Can {
    /// What the shims of this version can.
    pub(crate) const fn now(has_folder: bool) -> Self {
        Self { tape: has_folder, hold: true, guest: true, page: false }
    }

    fn bits(self) -> u64 {
        let bits = [(self.tape, 1), (self.hold, 2), (self.guest, 4), (self.page, 8)];
        bits.into_iter().filter(|(can, _)| *can).map(|(_, bit)| bit).sum()
    }

    pub(crate) fn write(self, fields: &mut Writer<'_>, tag: u8) {
        if self != Self::default() {
            fields.number(tag, self.bits());
        }
    }

    pub(crate) fn read(fields: Fields<'_>, tag: u8) -> Result<Self, FrameError> {
        let bits = fields.optional_number(tag)?.unwrap_or(0);
        let has = |bit| bits & bit != 0;
        Ok(Self { tape: has(1), hold: has(2), guest: has(4), page: has(8) })
    }
}

impl Flow {
    fn write(self, fields: &mut Writer<'_>, [state, why]: [u8; 2]) {
        match self {
            Self::Flows => fields.number(state, 0),
            Self::Full => fields.number(state, 1),
            Self::Broken { errno } => fields.number(state, 2).number(why, errno.unsigned_abs().into()),
        };
    }

    fn read(fields: Fields<'_>, [state, why]: [u8; 2]) -> Result<Self, FrameError> {
        Ok(match fields.number(state)? {
            0 => Self::Flows,
            1 => Self::Full,
            // Whatever else keeps the agent waiting, it is not for the daemon to end it.
            _ => Self::Broken { errno: fields.optional_number(why)?.unwrap_or(0) as i32 },
        })
    }
}

impl SaidUpTo {
    fn write(self, fields: &mut Writer<'_>, [said, written]: [u8; 2]) {
        fields.number(said, self.said.0).number(written, self.written.0);
    }

    fn read(fields: Fields<'_>, [said, written]: [u8; 2]) -> Result<Self, FrameError> {
        Ok(Self { said: SayNumber(fields.number(said)?), written: SayNumber(fields.number(written)?) })
    }
}

impl TapeStanding {
    pub(crate) fn write(&self, fields: &mut Writer<'_>) {
        fields.number(1, self.run.0).number(2, self.first.0).number(3, self.end.0).number(4, self.heard.0);
        self.said.write(fields, [5, 6]);
        self.flow.write(fields, [7, 8]);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            first: Position(fields.number(2)?),
            end: Position(fields.number(3)?),
            heard: Position(fields.number(4)?),
            said: SaidUpTo::read(fields, [5, 6])?,
            flow: Flow::read(fields, [7, 8])?,
        })
    }
}

impl TapeEnd {
    pub(crate) fn write(self, fields: &mut Writer<'_>) {
        fields.number(13, self.end.0);
        self.said.write(fields, [14, 15]);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Option<Self>, FrameError> {
        let Some(end) = fields.optional_number(13)? else { return Ok(None) };
        Ok(Some(Self { end: Position(end), said: SaidUpTo::read(fields, [14, 15])? }))
    }
}

impl TapeReport {
    pub(crate) fn write(self, fields: &mut Writer<'_>) {
        match self {
            Self::Grown { run, end } => _ = fields.number(1, run.0).number(2, end.0),
            Self::Said { run, said } => said.write(fields.number(1, run.0), [2, 3]),
            Self::Refused { run, number, why } => why.write(fields.number(1, run.0).number(2, number.0)),
            Self::State { run, flow } => flow.write(fields.number(1, run.0), [2, 3]),
        }
    }

    pub(crate) fn grown(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self::Grown { run: RunNumber(fields.number(1)?), end: Position(fields.number(2)?) })
    }

    pub(crate) fn said(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self::Said { run: RunNumber(fields.number(1)?), said: SaidUpTo::read(fields, [2, 3])? })
    }

    pub(crate) fn refused(fields: Fields<'_>) -> Result<Self, FrameError> {
        let (run, number) = (RunNumber(fields.number(1)?), SayNumber(fields.number(2)?));
        Ok(Self::Refused { run, number, why: SayRefused::read(fields)? })
    }

    pub(crate) fn state(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self::State { run: RunNumber(fields.number(1)?), flow: Flow::read(fields, [2, 3])? })
    }
}
