//! An agent's call for a person on its terminal, by the bell or by a notification.

use crate::protocol::exited::wall;
use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use pinfold_core::time::Wall;

/// An agent's call for a person on its terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BellRing {
    /// When it was made.
    pub at: Wall,
    /// The text of the notification, if it was one and had any.
    pub text: Option<String>,
}

impl BellRing {
    /// Writes a ring, or that there is none any more.
    pub(crate) fn write(ring: Option<&BellRing>, fields: &mut FieldWriter<'_>) {
        let Some(BellRing { at, text }) = ring else { return };
        fields.number(2, at.0.cast_unsigned());
        if let Some(text) = text {
            fields.bytes(3, text.as_bytes());
        }
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Option<BellRing>, FrameError> {
        if fields.find(2).is_none() {
            return Ok(None);
        }
        let text = fields.find(3).map(|_| fields.bytes(3)).transpose()?;
        let text = text.map(|text| String::from_utf8_lossy(text).into_owned());
        Ok(Some(BellRing { at: wall(fields, 2)?, text }))
    }
}
