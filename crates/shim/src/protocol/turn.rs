//! A turn as a shim saw it: one encoding for both disk and wire.

use super::frame::{FieldWriter, Fields, FrameError};
use super::output::Position;
use pinfold_core::ids::{MessageId, RunNumber};

/// The turn of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The agent's run.
    pub run: RunNumber,
    /// The message's id.
    pub message: MessageId,
    /// The delivery's number.
    pub attempt: u32,
    /// The log's position when the agent had taken the message.
    pub from: Position,
    /// Its end, if it has come.
    pub done: Option<DoneLine>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneLine {
    /// The log's position after the turn's last line.
    pub to: Position,
    /// The rest of that line.
    pub answer: Vec<u8>,
    /// Whether the answer is complete.
    pub whole: bool,
    /// The id that the line begins with, if it is not that of this turn's message. If it belongs to another
    /// message of the session, this is not the end of the turn; the shim cannot know that, but the daemon
    /// does.
    pub named: Option<MessageId>,
}

impl Turn {
    /// Returns whether it is the turn of this delivery in this run.
    #[must_use]
    pub fn is(&self, run: RunNumber, message: MessageId, attempt: u32) -> bool {
        (self.run, self.message, self.attempt) == (run, message, attempt)
    }

    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
        fields.number(1, self.run.0).wide(2, self.message.0).number(3, self.attempt.into());
        fields.number(4, self.from.0);
        if let Some(done) = &self.done {
            fields.number(5, done.to.0).bytes(6, &done.answer).flag(7, !done.whole);
            if let Some(named) = done.named {
                fields.wide(8, named.0);
            }
        }
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let done = match fields.optional_number(5)? {
            None => None,
            Some(to) => {
                let (answer, whole) = (fields.bytes(6)?.to_vec(), !fields.flag(7)?);
                let named = fields.find(8).map(|_| fields.wide(8)).transpose()?.map(MessageId);
                Some(DoneLine { to: Position(to), answer, whole, named })
            }
        };
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            message: MessageId(fields.wide(2)?),
            attempt: fields.small(3)?,
            from: Position(fields.number(4)?),
            done,
        })
    }
}
