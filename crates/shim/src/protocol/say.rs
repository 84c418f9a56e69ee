//! What is said to an agent, by number: nothing is written unless the number follows the last one.

use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use crate::protocol::output::Position;
use pinfold_core::ids::RunNumber;
use std::fmt;

/// Longest label in bytes.
const LONGEST_LABEL: usize = 128;

/// The number of a word said in a run: the first is 1, and 0 is before all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SayNumber(pub u64);

impl SayNumber {
    /// Returns the next number.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// What a word was for, in the daemon's own text: a later daemon reads this, never the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

/// The label is too long, or has a zero byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a label has at most {LONGEST_LABEL} bytes and no zero among them")]
pub struct NotALabel;

impl Label {
    /// Makes a label of a text of at most 128 bytes, none of them zero.
    ///
    /// # Errors
    /// It is longer, or has a zero byte, which would end it on the tape.
    pub fn new(text: impl Into<String>) -> Result<Self, NotALabel> {
        let text = text.into();
        let fits = text.len() <= LONGEST_LABEL && !text.contains('\0');
        if fits { Ok(Self(text)) } else { Err(NotALabel) }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A word for an agent, said once in its run.
#[derive(Clone, PartialEq, Eq)]
pub struct Say {
    /// The agent's run.
    pub run: RunNumber,
    /// The word's number.
    pub number: SayNumber,
    /// What the word is for.
    pub label: Label,
    /// The bytes to write.
    pub bytes: Vec<u8>,
    /// If set, the word is refused when the agent has printed anything beyond this position.
    pub heard: Option<Position>,
    /// Whether the agent's standard input is closed afterwards.
    pub close: bool,
}

impl fmt::Debug for Say {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes are a person's, or a secret.
        let Self { run, number, label, bytes, .. } = self;
        write!(f, "Say({run}, {number:?}, {:?}, {} bytes)", label.as_str(), bytes.len())
    }
}

impl Say {
    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
        fields.number(1, self.run.0).number(2, self.number.0).bytes(3, self.label.0.as_bytes());
        fields.bytes(4, &self.bytes);
        if let Some(heard) = self.heard {
            fields.number(5, heard.0);
        }
        fields.flag(6, self.close);
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            number: SayNumber(fields.number(2)?),
            label: Label::new(fields.text(3)?).map_err(|_| fields.missing(3))?,
            bytes: fields.find(4).unwrap_or_default().to_vec(),
            heard: fields.optional_number(5)?.map(Position),
            close: fields.flag(6)?,
        })
    }
}

/// Why a word was not said. Nothing of it was written, and its number is still free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SayRefused {
    /// Too much is waiting to be written.
    TooMuchWaits,
    /// The agent has no standard input, or closed it, or it is being closed.
    Closed,
    /// The agent has printed more than was heard.
    MoreWasPrinted,
    /// The tape cannot be written.
    TapeBroken {
        /// The kernel's error.
        errno: i32,
    },
    /// A reason that only a newer shim knows.
    Other {
        /// The reason's number.
        code: u64,
    },
}

impl SayRefused {
    pub(crate) fn write(self, fields: &mut FieldWriter<'_>) {
        match self {
            Self::TooMuchWaits => fields.number(3, 1),
            Self::Closed => fields.number(3, 2),
            Self::MoreWasPrinted => fields.number(3, 4),
            Self::TapeBroken { errno } => fields.number(3, 5).number(4, errno.unsigned_abs().into()),
            Self::Other { code } => fields.number(3, code),
        };
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(match fields.number(3)? {
            1 => Self::TooMuchWaits,
            2 => Self::Closed,
            4 => Self::MoreWasPrinted,
            5 => Self::TapeBroken { errno: fields.optional_number(4)?.unwrap_or(0) as i32 },
            code => Self::Other { code },
        })
    }
}
