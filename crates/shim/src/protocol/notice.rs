//! What an agent says through its notify socket.

use crate::protocol::exited::{said, said_code};
use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use pinfold_core::exit::ExitNotice;

/// What an agent can say through its notify socket. Repetitions may be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The agent is ready.
    Ready,
    /// The agent feeds its watchdog.
    Watchdog,
    /// The agent is about to end.
    Stopping,
    /// What the agent is doing, for people.
    Status(String),
    /// What the agent's exit will mean.
    Exit(ExitNotice),
}

impl Notice {
    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
        match self {
            Notice::Ready => fields.number(2, 1),
            Notice::Watchdog => fields.number(2, 2),
            Notice::Stopping => fields.number(2, 3),
            Notice::Status(text) => fields.number(2, 4).bytes(3, text.as_bytes()),
            Notice::Exit(said) => fields.number(2, 5).number(4, said_code(*said)),
        };
    }

    /// Reads a notice; `None` if its kind is unknown.
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
