//! What an agent says through its notify socket.

use crate::protocol::exited::{said, said_code};
use crate::protocol::frame::{Fields, FrameError, Writer};
use pinfold_core::exit::ExitNotice;

/// What an agent can say through its notify socket. Repeated words may be folded into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// It is ready.
    Ready,
    /// Its watchdog is fed.
    Watchdog,
    /// It is about to end.
    Stopping,
    /// What it is doing, for people.
    Status(String),
    /// What its exit will mean.
    Exit(ExitNotice),
}

impl Notice {
    pub(crate) fn write(&self, fields: &mut Writer<'_>) {
        match self {
            Notice::Ready => fields.number(2, 1),
            Notice::Watchdog => fields.number(2, 2),
            Notice::Stopping => fields.number(2, 3),
            Notice::Status(text) => fields.number(2, 4).bytes(3, text.as_bytes()),
            Notice::Exit(said) => fields.number(2, 5).number(4, said_code(*said)),
        };
    }

    /// Reads one; nothing when its kind is not known.
    pub(crate) fn read(fields: Fields<'_>) -> Result<Option<Notice>, FrameError> {
        Ok(match fields.number(2)? {
            1 => Some(Notice::Ready),
            2 => Some(Notice::Watchdog),
            3 => Some(Notice::Stopping),
            4 => Some(Notice::Status(String::from_utf8_lossy(fields.bytes(3)?).into_owned())),
            5 => said(fields.number(4)?).map(Notice::Exit),
            _ => None,
        })
    }
}
