//! What an agent printed: on which stream, and where it stands in the log.

/// A place in the log of a session: it only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// What a record of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
    /// A remark of the shim's: this many bytes could not be written here.
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
