//! How a run uses the tape: its output is written there before more is read, and the agent waits if it cannot
//! be.

use super::taped_input::TapedInput;
use crate::crash;
use crate::files::log::Stream;
use crate::files::tape::{MOST_OUTPUT, Tape, TapeContent};
use crate::protocol::say::{Say, SayRefused};
use crate::protocol::tape::{Flow, TapeEnd, TapeStanding};
use pinfold_core::ids::RunNumber;
use pinfold_core::time::Wall;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// This much more is read from a run that is being ended: an agent that waits in `write` does not notice that
/// it is to end.
const MORE: u64 = 8 << 20;
/// A failed write to the tape is retried, less and less often.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const LAST_RETRY: Duration = Duration::from_secs(1);

/// The tape as one run uses it.
#[derive(Debug)]
pub(super) struct Taping {
    run: RunNumber,
    /// How many bytes may be on the tape unheard.
    bound: u64,
    pub(super) words: TapedInput,
    broken: Option<Broken>,
    /// The flow as last reported to the daemon.
    told: Flow,
}

/// A failed write to the tape.
#[derive(Debug)]
struct Broken {
    errno: Errno,
    /// Bytes that were read already; nothing more is read before they are written.
    unwritten: (Stream, Vec<u8>),
    again: Instant,
    wait: Duration,
}

/// What limits the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The unheard bytes.
    Heard,
    /// The unheard bytes and a bit more, and then nothing: the run is being ended.
    Ending,
    /// Nothing: the tree is gone, and this is its last output.
    Last,
}

impl Taping {
    pub(super) fn new(run: RunNumber, bound: u64, pipe: Option<OwnedFd>) -> Self {
        Self { run, bound, words: TapedInput::new(pipe), broken: None, told: Flow::Flows }
    }

    /// Returns whether more output is read now.
    pub(super) fn is_read(&self, tape: &Tape, due: Due) -> bool {
        due != Due::Heard || self.flow(tape) == Flow::Flows
    }

    /// Writes output, keeps it to be written later, or counts what cannot be kept.
    pub(super) fn hear(&mut self, tape: &mut Tape, due: Due, stream: Stream, bytes: &[u8], at: Wall) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(MOST_OUTPUT));
            match self.put(tape, due, stream, part, at) {
                Ok(()) => rest = behind,
                Err(errno) if due == Due::Heard => return self.keep(errno, stream, rest),
                Err(_) => {
                    tape.lose(self.run, part.len() as u64);
                    rest = behind;
                }
            }
        }
        self.broken = None;
    }

    fn put(&self, tape: &mut Tape, due: Due, stream: Stream, part: &[u8], at: Wall) -> Result<(), Errno> {
        if due == Due::Ending && tape.unheard() > self.bound.saturating_add(MORE) {
            return Err(Errno::DQUOT);
        }
        let what = match stream {
            Stream::Out => TapeContent::Out(part),
            Stream::Error => TapeContent::Error(part),
            Stream::Lost => return Ok(()),
        };
        tape.append(at, self.run, what)?;
        crash::point("tape.appended");
        Ok(())
    }

    fn keep(&mut self, errno: Errno, stream: Stream, bytes: &[u8]) {
        let wait = self.broken.as_ref().map_or(FIRST_RETRY, |broken| (broken.wait * 2).min(LAST_RETRY));
        let unwritten = (stream, bytes.to_vec());
        self.broken = Some(Broken { errno, unwritten, again: Instant::now() + wait, wait });
    }

    /// Retries a failed write, when it is time or nothing is left to wait for.
    pub(super) fn retry(&mut self, tape: &mut Tape, due: Due, now: Instant, at: Wall) {
        let Some(broken) = &mut self.broken else { return };
        if due != Due::Heard || now >= broken.again {
            let (stream, bytes) = (broken.unwritten.0, std::mem::take(&mut broken.unwritten.1));
            self.hear(tape, due, stream, &bytes, at);
        }
    }

    /// Returns when to try again.
    pub(super) fn again(&self) -> Option<Instant> {
        self.broken.as_ref().map(|broken| broken.again)
    }

    /// Writes a word to the tape, and then begins to write it to the agent.
    pub(super) fn say(&mut self, tape: &mut Tape, say: Say, at: Wall) -> Result<(), SayRefused> {
        self.words.admit(&say)?;
        let more = say.heard.is_some_and(|heard| tape.printed() > heard || self.flow(tape) != Flow::Flows);
        if more {
            return Err(SayRefused::MoreWasPrinted);
        }
        let broken = |errno: Errno| SayRefused::TapeBroken { errno: errno.raw_os_error() };
        if let Some(Broken { errno, .. }) = &self.broken {
            // Earlier output is not on the tape yet.
            return Err(broken(*errno));
        }
        let what = TapeContent::Said { number: say.number, label: say.label.as_str(), bytes: &say.bytes };
        tape.append(at, self.run, what).map_err(broken)?;
        crash::point("say.taped");
        self.words.take(say);
        Ok(())
    }

    /// Returns whether output is written and read on.
    fn flow(&self, tape: &Tape) -> Flow {
        match &self.broken {
            Some(broken) => Flow::Broken { errno: broken.errno.raw_os_error() },
            None if tape.unheard() > self.bound => Flow::Full,
            None => Flow::Flows,
        }
    }

    /// Returns the flow, if it differs from what the daemon knows.
    pub(super) fn new_flow(&mut self, tape: &Tape) -> Option<Flow> {
        let flow = self.flow(tape);
        (std::mem::replace(&mut self.told, flow) != flow).then_some(flow)
    }

    /// The run has ended: writes the rest of its output, or that it is lost, and the end.
    pub(super) fn end(&mut self, tape: &mut Tape, at: Wall) -> TapeEnd {
        self.words.shut();
        // If it cannot be written now, it is missing on the tape, which then does not claim to be whole.
        let _ = tape.append(at, self.run, TapeContent::End);
        TapeEnd { end: tape.end(), said: self.words.up_to() }
    }

    pub(super) fn standing(&self, tape: &Tape) -> TapeStanding {
        TapeStanding {
            run: self.run,
            first: tape.first(),
            end: tape.end(),
            heard: tape.heard_to(),
            said: self.words.up_to(),
            flow: self.flow(tape),
        }
    }
}
