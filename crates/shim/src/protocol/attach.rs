//! What a shim and a client attached to its terminal say to each other, on a separate connection.
//!
//! It needs no daemon: a terminal stays open through the daemon's death, and a key takes the shortest way.

use crate::protocol::frame::{Decoder, Frame, FrameError, write};
use crate::protocol::start::size;
use crate::socket;
use pinfold_core::ids::RunNumber;
use pinfold_terminal::Size;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What an attached client says.
#[derive(Clone, PartialEq, Eq)]
pub enum ViewerInput {
    /// The first word: show the terminal from now on.
    Join(Join),
    /// Typed keys.
    Typed(Vec<u8>),
    /// The client's terminal has a new size.
    Resized(Size),
}

/// How a client joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join {
    /// The run whose terminal is wanted; another run's is not shown.
    pub run: RunNumber,
    /// The size of the client's terminal.
    pub size: Size,
    /// Whether the client types.
    pub seat: Seat,
}

/// Whether an attached client types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// Only watches.
    Watches,
    /// Types when no other client does: first come, first served.
    Waits,
    /// Types from now on, replacing the client that did.
    Takes,
    /// Types alongside the client that does.
    Shares,
}

/// What a shim shows.
#[derive(Clone, PartialEq, Eq)]
pub enum Shown {
    /// Bytes for the client's terminal.
    Output(Vec<u8>),
    /// Who types now.
    Keyboard(Keyboard),
    /// The run has ended, or does not exist; the connection ends.
    Ended,
}

/// Who types, as told to an attached client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyboard {
    /// This client does.
    Yours,
    /// The process with this pid does; 0 if none does.
    Others(u32),
}

mod kind {
    pub(super) const JOIN: u8 = 32;
    pub(super) const TYPED: u8 = 33;
    pub(super) const RESIZED: u8 = 34;
    pub(super) const OUTPUT: u8 = 160;
    pub(super) const KEYBOARD: u8 = 161;
    pub(super) const ENDED: u8 = 162;
}

impl ViewerInput {
    /// Appends it as one frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Join(join) => write(out, kind::JOIN, |f| {
                f.number(1, join.run.0).number(2, join.size.rows().into());
                f.number(3, join.size.columns().into()).number(4, join.seat.code());
            }),
            Self::Typed(bytes) => write(out, kind::TYPED, |f| _ = f.bytes(1, bytes)),
            Self::Resized(size) => write(out, kind::RESIZED, |f| {
                f.number(2, size.rows().into()).number(3, size.columns().into());
            }),
        }
    }

    /// Reads it; `None` if its kind is not one of these.
    ///
    /// # Errors
    /// A necessary field is missing.
    pub fn decode(frame: &Frame<'_>) -> Result<Option<Self>, FrameError> {
        let fields = frame.fields;
        let size = || size(fields, 2, 3).map(Option::unwrap_or_default);
        Ok(Some(match frame.kind {
            kind::JOIN => {
                let seat = Seat::from_code(fields.number(4)?);
                Self::Join(Join { run: RunNumber(fields.number(1)?), size: size()?, seat })
            }
            kind::TYPED => Self::Typed(fields.bytes(1)?.to_vec()),
            kind::RESIZED => Self::Resized(size()?),
            _ => return Ok(None),
        }))
    }
}

impl Shown {
    /// Appends it as one frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Output(bytes) => encode_output(out, bytes),
            Self::Keyboard(keyboard) => write(out, kind::KEYBOARD, |f| match keyboard {
                Keyboard::Yours => _ = f.flag(1, true),
                Keyboard::Others(pid) => _ = f.number(2, (*pid).into()),
            }),
            Self::Ended => write(out, kind::ENDED, |_| ()),
        }
    }

    /// The bytes of output, where they are, if it is output.
    #[must_use]
    pub fn output<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
        if frame.kind == kind::OUTPUT { frame.fields.bytes(1).ok() } else { None }
    }

    /// Reads it; `None` if its kind is unknown, which is then skipped.
    ///
    /// # Errors
    /// A necessary field is missing.
    pub fn decode(frame: &Frame<'_>) -> Result<Option<Self>, FrameError> {
        let fields = frame.fields;
        Ok(Some(match frame.kind {
            kind::OUTPUT => Self::Output(fields.bytes(1)?.to_vec()),
            kind::KEYBOARD if fields.flag(1)? => Self::Keyboard(Keyboard::Yours),
            kind::KEYBOARD => {
                let pid = fields.optional_number(2)?.and_then(|pid| u32::try_from(pid).ok());
                Self::Keyboard(Keyboard::Others(pid.unwrap_or(0)))
            }
            kind::ENDED => Self::Ended,
            _ => return Ok(None),
        }))
    }
}

/// Appends output as one frame, without copying it first.
pub(crate) fn encode_output(out: &mut Vec<u8>, bytes: &[u8]) {
    write(out, kind::OUTPUT, |f| _ = f.bytes(1, bytes));
}

impl Seat {
    fn code(self) -> u64 {
        match self {
            Self::Watches => 0,
            Self::Waits => 1,
            Self::Takes => 2,
            Self::Shares => 3,
        }
    }

    fn from_code(code: u64) -> Self {
        match code {
            1 => Self::Waits,
            2 => Self::Takes,
            3 => Self::Shares,
            _ => Self::Watches,
        }
    }
}

/// Connects to the shim that listens at `path`, to say [`ViewerInput::Join`] and read frames with a [`Decoder`].
///
/// # Errors
/// No shim listens there, or another user's process does, which is [`io::ErrorKind::PermissionDenied`].
pub fn connect(path: &Path) -> io::Result<(UnixStream, Decoder)> {
    Ok((UnixStream::from(socket::connect(path)?), Decoder::default()))
}

impl fmt::Debug for ViewerInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join(join) => join.fmt(f),
            // Typed keys may be a password.
            Self::Typed(bytes) => write!(f, "Typed({} bytes)", bytes.len()),
            Self::Resized(size) => write!(f, "Resized({size:?})"),
        }
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(bytes) => write!(f, "Output({} bytes)", bytes.len()),
            Self::Keyboard(keyboard) => keyboard.fmt(f),
            Self::Ended => f.write_str("Ended"),
        }
    }
}
