//! What a shim reports of the tape: how far it has grown, what was said, and whether output flows.

use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use crate::protocol::output::Position;
use crate::protocol::say::{SayNumber, SayRefused};
use pinfold_core::ids::RunNumber;

/// What a shim reports of a run's tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapeReport {
    /// The tape has grown. Of several such reports only the last one is sent.
    Grown {
        /// The current run.
        run: RunNumber,
        /// Where the tape ends now.
        end: Position,
    },
    /// How far the words to the agent have come. Answers a [`crate::Say`] that was taken, or whose number is
    /// not the next, and is sent again when more was written.
    Said {
        /// The agent's run.
        run: RunNumber,
        /// How far they have come.
        said: SaidUpTo,
    },
    /// A word was not said.
    Refused {
        /// The agent's run.
        run: RunNumber,
        /// The word's number.
        number: SayNumber,
        /// Why it was not said.
        why: SayRefused,
    },
    /// The agent's output begins or ceases to flow.
    State {
        /// The agent's run.
        run: RunNumber,
        /// The new state.
        flow: Flow,
    },
}

/// How far the words said in a run have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaidUpTo {
    /// The last word that is on the tape.
    pub said: SayNumber,
    /// The last word that the agent's standard input has taken completely.
    pub written: SayNumber,
}

/// Whether an agent's output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// It is read.
    #[default]
    Flows,
    /// Too much on the tape is unheard: the agent waits.
    Full,
    /// The tape cannot be written: the agent waits.
    Broken {
        /// The kernel's error.
        errno: i32,
    },
}

/// The state of a run's tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapeStanding {
    /// The run's number.
    pub run: RunNumber,
    /// The first position that is still there.
    pub first: Position,
    /// Where it ends.
    pub end: Position,
    /// The position up to which it was heard.
    pub heard: Position,
    /// How far the words of this run have come.
    pub said: SaidUpTo,
    /// Whether the agent's output is read.
    pub flow: Flow,
}

/// What a run left on its tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapeEnd {
    /// Where the tape ended after all its output.
    pub end: Position,
    /// How far the words said in it had come.
    pub said: SaidUpTo,
}

/// What a shim can do besides what every shim can. A daemon asks for nothing that a shim did not announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Can {
    /// Write a tape, and take numbered words.
    pub tape: bool,
    /// Take more locks during a run.
    pub hold: bool,
    /// Start a guest.
    pub guest: bool,
    /// Read a fleet's deadline from a page.
    pub page: bool,
}

impl Can {
    /// Returns what shims of this version can do.
    pub(crate) const fn now(has_folder: bool) -> Self {
        Self { tape: has_folder, hold: true, guest: true, page: false }
    }

    fn bits(self) -> u64 {
        let bits = [(self.tape, 1), (self.hold, 2), (self.guest, 4), (self.page, 8)];
        bits.into_iter().filter(|(can, _)| *can).map(|(_, bit)| bit).sum()
    }

    pub(crate) fn write(self, fields: &mut FieldWriter<'_>, tag: u8) {
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
    fn write(self, fields: &mut FieldWriter<'_>, [state, why]: [u8; 2]) {
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
            // Whatever else keeps the agent waiting, the daemon must not end it for that.
            _ => Self::Broken { errno: fields.optional_number(why)?.unwrap_or(0) as i32 },
        })
    }
}

impl SaidUpTo {
    fn write(self, fields: &mut FieldWriter<'_>, [said, written]: [u8; 2]) {
        fields.number(said, self.said.0).number(written, self.written.0);
    }

    fn read(fields: Fields<'_>, [said, written]: [u8; 2]) -> Result<Self, FrameError> {
        Ok(Self { said: SayNumber(fields.number(said)?), written: SayNumber(fields.number(written)?) })
    }
}

impl TapeStanding {
    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
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
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
        fields.number(13, self.end.0);
        self.said.write(fields, [14, 15]);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Option<Self>, FrameError> {
        let Some(end) = fields.optional_number(13)? else { return Ok(None) };
        Ok(Some(Self { end: Position(end), said: SaidUpTo::read(fields, [14, 15])? }))
    }
}

impl TapeReport {
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
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
