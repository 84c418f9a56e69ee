//! What an agent printed: the stream, and its position in the log.

/// A position in a session's log; it only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// The kind of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
    /// A note by the shim: this many bytes could not be written here.
    Lost,
}

impl Stream {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Out => 1,
            Self::Error => 2,
            Self::Lost => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Out),
            2 => Some(Self::Error),
            3 => Some(Self::Lost),
            _ => None,
        }
    }
}
