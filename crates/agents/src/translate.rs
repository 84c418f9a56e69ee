//! A translator hears what happened in a run and says what that means; it also writes what is to be said.
//!
//! It does not know what counts; the [ledger](crate::ledger) does. If it fails at a line, its state is
//! restored to what it was before that line.

use crate::intent::{CannotSay, Intent};
use crate::label::Label;
use crate::ledger::{OpenDelivery, RunLedger};
use crate::setup::Setup;
use crate::turn::{EndedBy, TurnFailure};
use crate::word::{AgentWord, How, NamedTurn, ReportedEnd, Want};
use pinfold_core::{Exit, Wall};

/// What happened in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TranslatorInput<'a> {
    /// The run begins.
    Begin,
    /// This was said; the ledger knows already.
    Said { number: u64, label: &'a Label },
    /// Everything up to this number was written to the agent's input.
    Written { number: u64 },
    /// The agent printed a line.
    Line {
        bytes: &'a [u8],
        /// Position of the entry in which it began.
        began: u64,
    },
    /// The agent printed a line on its standard error.
    ErrorLine(&'a [u8]),
    /// The agent printed a line that is too long to read.
    TooLong,
    /// The run ended, and all its output was heard.
    Exited(Exit, EndedBy),
}

/// What a translator may look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunView<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) ledger: &'a RunLedger,
    /// When the entry that is heard was written on the tape.
    pub(crate) at: Wall,
}

/// The bytes of an intent.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Spoken {
    pub(crate) bytes: Vec<u8>,
    /// Close the agent's input afterwards.
    pub(crate) close: bool,
}

/// A protocol.
pub(crate) trait Translate {
    /// Returns the meaning of what happened.
    fn hear(&mut self, heard: TranslatorInput<'_>, see: &RunView<'_>) -> Vec<AgentWord>;

    /// Returns the bytes that express an intent. The fold has checked that it may be said.
    fn say(&self, number: u64, intent: &Intent, see: &RunView<'_>) -> Result<Spoken, CannotSay>;

    /// Returns how often the agent began the answer of the current turn again, as far as its protocol shows.
    fn begun_again(&self) -> u32 {
        0
    }

    /// Returns whether the protocol reports what the agent is doing.
    fn tells_activity(&self, _setup: &Setup) -> bool {
        true
    }
}

impl Spoken {
    /// One line.
    pub(crate) fn line(text: &str) -> Spoken {
        Spoken { bytes: format!("{text}\n").into_bytes(), close: false }
    }

    /// No bytes, and the end of the input.
    pub(crate) fn end() -> Spoken {
        Spoken { bytes: Vec::new(), close: true }
    }
}

impl RunView<'_> {
    /// Returns the turns that began by being written, for protocols in which nothing else proves it.
    pub(crate) fn written(&self, number: u64) -> impl Iterator<Item = NamedTurn> + '_ {
        let written = self.ledger.open().iter().filter(move |open| open.number <= number);
        written.map(|open| NamedTurn::Number(open.number))
    }

    /// Ends all open turns, because the output cannot be read.
    pub(crate) fn too_long(&self) -> Vec<AgentWord> {
        let failed = |open: &OpenDelivery| {
            let how = How::Failed(TurnFailure::too_long());
            AgentWord::Ended(ReportedEnd {
                turn: NamedTurn::Number(open.number),
                how,
                text: None,
                usage: None,
            })
        };
        self.ledger.open().iter().map(failed).collect()
    }

    /// The same, and interrupts an agent that may still be working on its turn in vain.
    pub(crate) fn given_up(&self) -> Vec<AgentWord> {
        let mut words = self.too_long();
        if !words.is_empty() {
            words.push(AgentWord::Want(Want::Interrupt));
        }
        words
    }
}
