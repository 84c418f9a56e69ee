//! What a daemon tells a shim.

use crate::protocol::frame::{Frame, FrameError, write};
use crate::protocol::guest::GuestStart;
use crate::protocol::keep::{Keep, LentLock};
use crate::protocol::output::Position;
use crate::protocol::say::Say;
use crate::protocol::start::{Start, duration, millis};
use pinfold_core::ids::{MessageId, RunNumber};
use std::time::Duration;

/// Something for a shim to do. Repeating a command is harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The first word to a new shim, with the descriptors of the locks: what it keeps, and where.
    Keep(Box<Keep>),
    /// The first word on every connection.
    Hello {
        /// The daemon's generation, one more at each of its starts. A higher one replaces older connections.
        generation: u64,
    },
    /// The session is stored: from now on the shim outlives its parent.
    Go,
    /// Start an agent.
    Start(Box<Start>),
    /// End the whole tree of a run: SIGTERM, grace, SIGKILL. If sent again, the shorter grace counts.
    Stop {
        /// The run to end.
        run: RunNumber,
        /// Time before SIGKILL.
        grace: Duration,
    },
    /// Send SIGINT to the agent.
    Interrupt {
        /// The agent's run.
        run: RunNumber,
    },
    /// Write to the agent's stdin. The same message and number are written once, even if sent twice.
    Input {
        /// The run to write to.
        run: RunNumber,
        /// The message's id.
        message: MessageId,
        /// The delivery's number, unique in the session.
        attempt: u32,
        /// The bytes to write.
        bytes: Vec<u8>,
        /// Whether the agent prints a line when its turn is over.
        says_done: bool,
    },
    /// Close the agent's stdin once everything queued is written.
    CloseInput {
        /// The agent's run.
        run: RunNumber,
    },
    /// Give the locks back and leave. Has no effect while a run lives.
    Release,
    /// The exits up to this run are stored.
    Ack {
        /// The last stored run.
        run: RunNumber,
    },
    /// Whether to send the agent's output as it comes; a shim does until told otherwise.
    Follow {
        /// `true` to send output.
        on: bool,
    },
    /// Listen for newcomers, even if the socket was removed meanwhile.
    Listen,
    /// Say something to the agent of a run with a tape, once per number.
    Say(Box<Say>),
    /// The daemon has stored what is on the tape below this position, so it need not be kept for it.
    Heard {
        /// The run of the tape.
        run: RunNumber,
        /// The position up to which it was heard.
        to: Position,
    },
    /// Hold more locks until the run ends. Their descriptors come along: [`crate::client::ShimConnection::hold`].
    Hold {
        /// The run for which they are held.
        run: RunNumber,
        /// The locks, in the order of their descriptors.
        locks: Vec<LentLock>,
    },
    /// Start a second process in a run, with its own terminal.
    Guest(Box<GuestStart>),
    /// End the guest of a run.
    GuestStop {
        /// The guest's run.
        run: RunNumber,
        /// The guest's number.
        guest: u64,
        /// Time before SIGKILL.
        grace: Duration,
    },
}

mod kind {
    pub(super) const KEEP: u8 = 1;
    pub(super) const HELLO: u8 = 2;
    pub(super) const GO: u8 = 3;
    pub(super) const START: u8 = 4;
    pub(super) const STOP: u8 = 5;
    pub(super) const INTERRUPT: u8 = 6;
    pub(super) const INPUT: u8 = 7;
    pub(super) const CLOSE_INPUT: u8 = 8;
    pub(super) const RELEASE: u8 = 9;
    // 10 was a moment at which to die. It is never reused.
    pub(super) const ACK: u8 = 11;
    pub(super) const FOLLOW: u8 = 12;
    pub(super) const LISTEN: u8 = 13;
    pub(super) const SAY: u8 = 14;
    pub(super) const HEARD: u8 = 15;
    pub(super) const HOLD: u8 = 16;
    pub(super) const GUEST: u8 = 17;
    pub(super) const GUEST_STOP: u8 = 18;
}

impl Command {
    /// Appends the command as one frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Keep(keep) => write(out, kind::KEEP, |fields| keep.write(fields)),
            Self::Hello { generation } => write(out, kind::HELLO, |f| _ = f.number(1, *generation)),
            Self::Go => write(out, kind::GO, |_| ()),
            Self::Start(start) => start.encode(out),
            Self::Stop { run, grace } => {
                write(out, kind::STOP, |f| _ = f.number(1, run.0).number(2, millis(*grace)));
            }
            Self::Interrupt { run } => write(out, kind::INTERRUPT, |f| _ = f.number(1, run.0)),
            Self::Input { run, message, attempt, bytes, says_done } => write(out, kind::INPUT, |f| {
                f.number(1, run.0).wide(2, message.0).number(3, (*attempt).into()).bytes(4, bytes);
                f.flag(5, *says_done);
            }),
            Self::CloseInput { run } => write(out, kind::CLOSE_INPUT, |f| _ = f.number(1, run.0)),
            Self::Release => write(out, kind::RELEASE, |_| ()),
            Self::Ack { run } => write(out, kind::ACK, |f| _ = f.number(1, run.0)),
            Self::Follow { on } => write(out, kind::FOLLOW, |f| _ = f.flag(1, *on)),
            Self::Listen => write(out, kind::LISTEN, |_| ()),
            Self::Say(say) => write(out, kind::SAY, |f| say.write(f)),
            Self::Heard { run, to } => write(out, kind::HEARD, |f| _ = f.number(1, run.0).number(2, to.0)),
            Self::Hold { run, locks } => write(out, kind::HOLD, |f| {
                LentLock::write_all(locks, f.number(1, run.0));
            }),
            Self::Guest(guest) => write(out, kind::GUEST, |f| guest.write(f)),
            Self::GuestStop { run, guest, grace } => write(out, kind::GUEST_STOP, |f| {
                f.number(1, run.0).number(2, *guest).number(3, millis(*grace));
            }),
        }
    }

    /// Reads a command; `None` if its kind is unknown, which is then skipped.
    ///
    /// # Errors
    /// A necessary field is missing.
    pub fn decode(frame: &Frame<'_>) -> Result<Option<Self>, FrameError> {
        let fields = frame.fields;
        let run = |tag| fields.number(tag).map(RunNumber);
        Ok(Some(match frame.kind {
            kind::KEEP => Self::Keep(Box::new(Keep::read(fields)?)),
            kind::HELLO => Self::Hello { generation: fields.number(1)? },
            kind::GO => Self::Go,
            kind::START => Self::Start(Box::new(Start::read(fields)?)),
            kind::STOP => Self::Stop { run: run(1)?, grace: duration(fields, 2)? },
            kind::INTERRUPT => Self::Interrupt { run: run(1)? },
            kind::INPUT => Self::Input {
                run: run(1)?,
                message: MessageId(fields.wide(2)?),
                attempt: fields.small(3)?,
                bytes: fields.bytes(4)?.to_vec(),
                says_done: fields.flag(5)?,
            },
            kind::CLOSE_INPUT => Self::CloseInput { run: run(1)? },
            kind::RELEASE => Self::Release,
            kind::ACK => Self::Ack { run: run(1)? },
            kind::FOLLOW => Self::Follow { on: fields.flag(1)? },
            kind::LISTEN => Self::Listen,
            kind::SAY => Self::Say(Box::new(Say::read(fields)?)),
            kind::HEARD => Self::Heard { run: run(1)?, to: Position(fields.number(2)?) },
            kind::HOLD => Self::Hold { run: run(1)?, locks: LentLock::read_all(fields)? },
            kind::GUEST => Self::Guest(Box::new(GuestStart::read(fields)?)),
            kind::GUEST_STOP => {
                Self::GuestStop { run: run(1)?, guest: fields.number(2)?, grace: duration(fields, 3)? }
            }
            _ => return Ok(None),
        }))
    }
}

impl Start {
    /// Appends the command for this start.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        write(out, kind::START, |fields| self.write(fields));
    }
}
