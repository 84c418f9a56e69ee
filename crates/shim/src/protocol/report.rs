//! What a shim tells a daemon.

use crate::protocol::exited::{Exited, StartFailure, wall};
use crate::protocol::frame::{Fields, Frame, FrameError, write};
use crate::protocol::guest::GuestReport;
use crate::protocol::notice::Notice;
use crate::protocol::output::{Position, Stream};
use crate::protocol::ring::BellRing;
use crate::protocol::tape::TapeReport;
use crate::protocol::turn::Turn;
use crate::protocol::welcome::{Welcome, process};
use pinfold_core::ids::{MessageId, RunNumber};
use pinfold_core::life::Process;
use pinfold_core::time::Wall;
use pinfold_core::unended::{Survivor, Undying};
use std::fmt;

/// Something a shim says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The answer to a hello: the locks are held, and this is the current state.
    Welcome(Box<Welcome>),
    /// The answer to an older daemon's hello; the connection ends.
    Refused {
        /// The generation that was accepted before.
        generation: u64,
    },
    /// An agent runs: exec succeeded.
    Started {
        /// The run's number.
        run: RunNumber,
        /// Its pid and the fence of the session lock.
        process: Process,
        /// When it started.
        at: Wall,
    },
    /// A start failed; no process of it is alive.
    StartFailed {
        /// The run's number.
        run: RunNumber,
        /// Why the start failed.
        why: StartFailure,
    },
    /// A run ended: its tree is empty, its output read, its record written.
    Exited(Exited),
    /// A command named a run that this shim does not know.
    NoSuchRun {
        /// The run's number.
        run: RunNumber,
    },
    /// What the agent printed, while the daemon keeps up.
    Output(Output),
    /// Output was not sent because the daemon did not keep up; it is in the log, up to here.
    LogGrown {
        /// The end of the log.
        to: Position,
    },
    /// What the agent said through its notify socket.
    Notify {
        /// The agent's run.
        run: RunNumber,
        /// What the agent said.
        notice: Notice,
    },
    /// The agent's stdin took a whole input.
    InputTaken {
        /// The agent's run.
        run: RunNumber,
        /// The message's id.
        message: MessageId,
        /// The delivery's number.
        attempt: u32,
        /// The log's position at that moment.
        from: Position,
    },
    /// The agent said that a turn is over.
    TurnDone(Box<Turn>),
    /// The agent said that a turn is over while none was under way; it is ignored.
    StrayDone {
        /// The agent's run.
        run: RunNumber,
        /// The message that it named, if any.
        named: Option<MessageId>,
    },
    /// An input was not written, or only in part.
    InputRefused {
        /// The agent's run.
        run: RunNumber,
        /// The message's id.
        message: MessageId,
        /// The delivery's number.
        attempt: u32,
        /// Why it was not written.
        why: InputRefused,
    },
    /// Processes of a run that should be over and that cannot be ended. Sent again when they change.
    Survivors {
        /// The run's number.
        run: RunNumber,
        /// The processes, and why they survive.
        left: Vec<Survivor>,
    },
    /// The locks are free, and the shim ends.
    Leaving,
    /// The shim could not begin; the first and last word of one that was just started.
    CannotKeep {
        /// The kernel's error, if it was the kernel.
        errno: Option<i32>,
        /// What was wrong, in words.
        text: String,
    },
    /// Something about the tape of a run.
    Tape(TapeReport),
    /// The locks that came with a [`crate::Command::Hold`] and are held now; a lock that could not be taken
    /// is missing.
    Held {
        /// The run until whose end they are held.
        run: RunNumber,
        /// What they lock, as in [`pinfold_lock::Guard::resource`].
        resources: Vec<String>,
    },
    /// Something about the guest of a run.
    Guest(GuestReport),
    /// The agent asked for a person on its terminal, or no longer does. Repeated to a new daemon while it
    /// counts.
    Rang {
        /// The agent's run.
        run: RunNumber,
        /// How it asked; `None` if a person typed since, or the agent printed on.
        ring: Option<BellRing>,
    },
}

impl Report {
    /// Returns its name in the daemon's log.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Report::Welcome(_) => "welcome",
            Report::Refused { .. } => "refused",
            Report::Started { .. } => "started",
            Report::StartFailed { .. } => "start_failed",
            Report::Exited(_) => "exited",
            Report::NoSuchRun { .. } => "no_such_run",
            Report::Output(_) => "output",
            Report::LogGrown { .. } => "log_grown",
            Report::Notify { .. } => "notify",
            Report::InputTaken { .. } => "input_taken",
            Report::TurnDone(_) => "turn_done",
            Report::StrayDone { .. } => "stray_done",
            Report::InputRefused { .. } => "input_refused",
            Report::Survivors { .. } => "survivors",
            Report::Leaving => "leaving",
            Report::CannotKeep { .. } => "cannot_keep",
            Report::Tape(TapeReport::Grown { .. }) => "taped",
            Report::Tape(TapeReport::Said { .. }) => "said",
            Report::Tape(TapeReport::Refused { .. }) => "say_refused",
            Report::Tape(TapeReport::State { .. }) => "tape_state",
            Report::Held { .. } => "held",
            Report::Guest(GuestReport::Started { .. }) => "guest_started",
            Report::Guest(GuestReport::Ended { .. }) => "guest_ended",
            Report::Rang { .. } => "rang",
        }
    }
}

/// A piece of an agent's output.
#[derive(Clone, PartialEq, Eq)]
pub struct Output {
    /// The agent's run.
    pub run: RunNumber,
    /// The stream it came from.
    pub stream: Stream,
    /// Its position in the log.
    pub at: Position,
    /// Where the log continues; equal to `at` if it could not be written there.
    pub next: Position,
    /// The printed bytes.
    pub bytes: Vec<u8>,
}

/// Why an input was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRefused {
    /// Too much is waiting to be written.
    Full,
    /// The agent has no stdin, or closed it.
    Closed,
}

mod kind {
    pub(super) const WELCOME: u8 = 129;
    pub(super) const REFUSED: u8 = 130;
    pub(super) const STARTED: u8 = 131;
    pub(super) const START_FAILED: u8 = 132;
    pub(super) const EXITED: u8 = 133;
    pub(super) const NO_SUCH_RUN: u8 = 134;
    pub(super) const OUTPUT: u8 = 135;
    pub(super) const LOG_GROWN: u8 = 136;
    pub(super) const NOTIFY: u8 = 137;
    pub(super) const INPUT_TAKEN: u8 = 138;
    pub(super) const INPUT_REFUSED: u8 = 139;
    pub(super) const LEAVING: u8 = 140;
    pub(super) const TURN_DONE: u8 = 141;
    pub(super) const STRAY_DONE: u8 = 142;
    pub(super) const CANNOT_KEEP: u8 = 143;
    pub(super) const SURVIVORS: u8 = 144;
    pub(super) const TAPED: u8 = 145;
    pub(super) const SAID: u8 = 146;
    pub(super) const SAY_REFUSED: u8 = 147;
    pub(super) const HELD: u8 = 148;
    pub(super) const TAPE_STATE: u8 = 149;
    pub(super) const GUEST_STARTED: u8 = 150;
    pub(super) const GUEST_ENDED: u8 = 151;
    pub(super) const RANG: u8 = 152;

    pub(super) fn of_tape(report: &super::TapeReport) -> u8 {
        match report {
            super::TapeReport::Grown { .. } => TAPED,
            super::TapeReport::Said { .. } => SAID,
            super::TapeReport::Refused { .. } => SAY_REFUSED,
            super::TapeReport::State { .. } => TAPE_STATE,
        }
    }

    pub(super) fn of_guest(report: &super::GuestReport) -> u8 {
        match report {
            super::GuestReport::Started { .. } => GUEST_STARTED,
            super::GuestReport::Ended { .. } => GUEST_ENDED,
        }
    }
}

impl Report {
    /// Appends the report as one frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Welcome(welcome) => write(out, kind::WELCOME, |f| welcome.write(f)),
            Self::Refused { generation } => write(out, kind::REFUSED, |f| _ = f.number(1, *generation)),
            Self::Started { run, process, at } => write(out, kind::STARTED, |f| {
                f.number(1, run.0).number(2, process.pid.into()).number(3, process.fence);
                f.number(4, at.0.cast_unsigned());
            }),
            Self::StartFailed { run, why } => write(out, kind::START_FAILED, |f| {
                f.number(1, run.0).group(2, |inner| why.write(inner));
            }),
            Self::Exited(exited) => write(out, kind::EXITED, |f| exited.write(f)),
            Self::NoSuchRun { run } => write(out, kind::NO_SUCH_RUN, |f| _ = f.number(1, run.0)),
            Self::Output(output) => {
                encode_output(out, output.run, output.stream, output.at, output.next, &output.bytes);
            }
            Self::LogGrown { to } => write(out, kind::LOG_GROWN, |f| _ = f.number(1, to.0)),
            Self::Notify { run, notice } => write(out, kind::NOTIFY, |f| notice.write(f.number(1, run.0))),
            Self::InputTaken { run, message, attempt, from } => write(out, kind::INPUT_TAKEN, |f| {
                f.number(1, run.0).wide(2, message.0).number(3, (*attempt).into()).number(4, from.0);
            }),
            Self::TurnDone(turn) => write(out, kind::TURN_DONE, |f| turn.write(f)),
            Self::StrayDone { run, named } => write(out, kind::STRAY_DONE, |f| {
                f.number(1, run.0);
                if let Some(named) = named {
                    f.wide(2, named.0);
                }
            }),
            Self::InputRefused { run, message, attempt, why } => write(out, kind::INPUT_REFUSED, |f| {
                f.number(1, run.0).wide(2, message.0).number(3, (*attempt).into());
                f.flag(4, *why == InputRefused::Full);
            }),
            Self::Survivors { run, left } => encode_survivors(out, *run, left),
            Self::Leaving => write(out, kind::LEAVING, |_| ()),
            Self::CannotKeep { errno, text } => write(out, kind::CANNOT_KEEP, |f| {
                f.number(1, errno.unwrap_or(0).unsigned_abs().into()).bytes(2, text.as_bytes());
            }),
            Self::Tape(report) => write(out, kind::of_tape(report), |f| report.write(f)),
            Self::Held { run, resources } => encode_held(out, *run, resources),
            Self::Guest(report) => write(out, kind::of_guest(report), |f| report.write(f)),
            Self::Rang { run, ring } => {
                write(out, kind::RANG, |f| BellRing::write(ring.as_ref(), f.number(1, run.0)));
            }
        }
    }

    /// Reads a report; `None` if its kind is unknown, which is then skipped.
    ///
    /// # Errors
    /// A necessary field is missing.
    pub fn decode(frame: &Frame<'_>) -> Result<Option<Self>, FrameError> {
        let fields = frame.fields;
        let run = || fields.number(1).map(RunNumber);
        let message = || fields.wide(2).map(MessageId);
        Ok(Some(match frame.kind {
            kind::WELCOME => Self::Welcome(Box::new(Welcome::read(fields)?)),
            kind::REFUSED => Self::Refused { generation: fields.number(1)? },
            kind::STARTED => Self::Started { run: run()?, process: process(fields)?, at: wall(fields, 4)? },
            kind::START_FAILED => {
                let why = StartFailure::read(fields.inside(fields.bytes(2)?)?)?;
                Self::StartFailed { run: run()?, why }
            }
            kind::EXITED => Self::Exited(Exited::read(fields)?),
            kind::NO_SUCH_RUN => Self::NoSuchRun { run: run()? },
            kind::OUTPUT => Self::Output(Output::read(fields)?),
            kind::LOG_GROWN => Self::LogGrown { to: Position(fields.number(1)?) },
            kind::NOTIFY => match Notice::read(fields)? {
                Some(notice) => Self::Notify { run: run()?, notice },
                None => return Ok(None),
            },
            kind::INPUT_TAKEN => {
                let from = Position(fields.optional_number(4)?.unwrap_or(0));
                Self::InputTaken { run: run()?, message: message()?, attempt: fields.small(3)?, from }
            }
            kind::INPUT_REFUSED => {
                let why = if fields.flag(4)? { InputRefused::Full } else { InputRefused::Closed };
                Self::InputRefused { run: run()?, message: message()?, attempt: fields.small(3)?, why }
            }
            kind::TURN_DONE => Self::TurnDone(Box::new(Turn::read(fields)?)),
            kind::SURVIVORS => Self::Survivors { run: run()?, left: survivors(fields)? },
            kind::STRAY_DONE => {
                let named = fields.find(2).map(|_| message()).transpose()?;
                Self::StrayDone { run: run()?, named }
            }
            kind::LEAVING => Self::Leaving,
            kind::CANNOT_KEEP => {
                let errno = Some(fields.number(1)? as i32).filter(|errno| *errno != 0);
                Self::CannotKeep { errno, text: String::from_utf8_lossy(fields.bytes(2)?).into_owned() }
            }
            kind::TAPED => Self::Tape(TapeReport::grown(fields)?),
            kind::SAID => Self::Tape(TapeReport::said(fields)?),
            kind::SAY_REFUSED => Self::Tape(TapeReport::refused(fields)?),
            kind::TAPE_STATE => Self::Tape(TapeReport::state(fields)?),
            kind::HELD => Self::Held { run: run()?, resources: held(fields) },
            kind::GUEST_STARTED => Self::Guest(GuestReport::started(fields)?),
            kind::GUEST_ENDED => Self::Guest(GuestReport::ended(fields)?),
            kind::RANG => Self::Rang { run: run()?, ring: BellRing::read(fields)? },
            _ => return Ok(None),
        }))
    }
}

/// Appends an output frame without copying its bytes first.
pub(crate) fn encode_output(
    out: &mut Vec<u8>,
    run: RunNumber,
    stream: Stream,
    at: Position,
    next: Position,
    bytes: &[u8],
) {
    write(out, kind::OUTPUT, |f| {
        f.number(1, run.0).number(2, stream.code().into()).number(3, at.0);
        f.number(4, next.0 - at.0).bytes(5, bytes);
    });
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text is the agent's, and may be long.
        write!(f, "Output({}, {:?}, {:?}, {} bytes)", self.run, self.stream, self.at, self.bytes.len())
    }
}

impl Output {
    fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        let at = fields.number(3)?;
        let stream = u8::try_from(fields.number(2)?).ok().and_then(Stream::from_code);
        Ok(Self {
            run: RunNumber(fields.number(1)?),
            stream: stream.ok_or(fields.missing(2))?,
            at: Position(at),
            next: Position(at.saturating_add(fields.number(4)?)),
            bytes: fields.bytes(5)?.to_vec(),
        })
    }
}

fn encode_held(out: &mut Vec<u8>, run: RunNumber, resources: &[String]) {
    write(out, kind::HELD, |f| {
        f.number(1, run.0);
        for resource in resources {
            f.bytes(2, resource.as_bytes());
        }
    });
}

fn held(fields: Fields<'_>) -> Vec<String> {
    fields.all(2).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
}

fn encode_survivors(out: &mut Vec<u8>, run: RunNumber, left: &[Survivor]) {
    write(out, kind::SURVIVORS, |f| {
        f.number(1, run.0);
        for survivor in left {
            f.group(2, |inner| {
                inner.number(1, survivor.pid.into()).bytes(2, survivor.name.as_bytes());
                if let Undying::NotPermitted { uid } = survivor.why {
                    inner.number(3, uid.into());
                }
            });
        }
    });
}

fn survivors(fields: Fields<'_>) -> Result<Vec<Survivor>, FrameError> {
    let mut left = Vec::new();
    for bytes in fields.all(2) {
        let inner = fields.inside(bytes)?;
        let uid = inner.optional_number(3)?.and_then(|uid| u32::try_from(uid).ok());
        left.push(Survivor {
            pid: inner.small(1)?,
            name: String::from_utf8_lossy(inner.bytes(2)?).into_owned(),
            why: uid.map_or(Undying::DoesNotEnd, |uid| Undying::NotPermitted { uid }),
        });
    }
    Ok(left)
}
