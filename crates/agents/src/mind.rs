//! A translator with its ledger: what it understands is recorded, and a failure changes nothing.

use crate::intent::{CannotSay, Intent, LONGEST_WORD};
use crate::ledger::RunLedger;
use crate::note::{self, LogNote};
use crate::observation::Observation;
use crate::setup::Setup;
use crate::state::TranslatorState;
use crate::translate::{RunView, Spoken, TranslatorInput};
use crate::word::{AgentWord, Want};
use pinfold_core::Wall;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Longest panic text that is passed on, in bytes.
const LONGEST_PANIC: usize = 400;

/// What is known of a run: its setup, its ledger and its translator's state.
#[derive(Debug)]
pub(crate) struct Mind {
    pub(crate) setup: Setup,
    pub(crate) ledger: RunLedger,
    pub(crate) state: TranslatorState,
}

impl Mind {
    /// Lets the translator hear what happened.
    pub(crate) fn hear(&mut self, heard: TranslatorInput<'_>, at: Wall, told: &mut Vec<Observation>) {
        let before = self.state.clone();
        let see = RunView { setup: &self.setup, ledger: &self.ledger, at };
        let translator = self.state.translator_mut();
        // The state is restored, so nothing half done by a failed translator remains.
        let words = catch_unwind(AssertUnwindSafe(|| translator.hear(heard, &see)));
        match words {
            Ok(words) => {
                let words = words.into_iter().map(|word| checked(word, &self.setup)).collect();
                self.ledger.hear(words, told);
            }
            Err(panic) => {
                self.state = before;
                self.ledger.panicked(text_of(&*panic), told);
            }
        }
        self.tell_activity(told);
    }

    pub(crate) fn tell_activity(&mut self, told: &mut Vec<Observation>) {
        let known = self.state.translator().tells_activity(&self.setup);
        self.ledger.tell_activity(known, told);
    }

    /// Returns the bytes that express an intent, if it may be said now.
    pub(crate) fn say(&self, number: u64, intent: &Intent) -> Result<Spoken, CannotSay> {
        self.may(intent)?;
        let see = RunView { setup: &self.setup, ledger: &self.ledger, at: Wall(0) };
        let say = AssertUnwindSafe(|| self.state.translator().say(number, intent, &see));
        let spoken = catch_unwind(say).unwrap_or(Err(CannotSay::Panicked))?;
        if spoken.bytes.len() > LONGEST_WORD { Err(CannotSay::TooLong) } else { Ok(spoken) }
    }

    /// Checks the rules that hold for every protocol, whatever it has words for.
    fn may(&self, intent: &Intent) -> Result<(), CannotSay> {
        let ledger = &self.ledger;
        if ledger.closed() {
            return Err(CannotSay::Closed);
        }
        if self.state.is_unknown() {
            return Ok(());
        }
        match intent {
            Intent::Handshake { step } if ledger.want() != Some(Want::Handshake(*step)) => {
                Err(CannotSay::NotWanted)
            }
            Intent::Prompt(_) if !ledger.ready() => Err(CannotSay::NotReady),
            Intent::Prompt(_) if !ledger.open().is_empty() => Err(CannotSay::TurnUnderWay),
            Intent::Answer(reply) if ledger.request(reply.request).is_none() => Err(CannotSay::NoSuchRequest),
            Intent::Interrupt if !ledger.turn_under_way() && ledger.want() != Some(Want::Interrupt) => {
                Err(CannotSay::NoTurn)
            }
            Intent::Handshake { .. }
            | Intent::Prompt(_)
            | Intent::Answer(_)
            | Intent::Interrupt
            | Intent::Close => Ok(()),
        }
    }
}

/// An id that its vendor does not make is noted instead of learned: it would become an argument.
fn checked(word: AgentWord, setup: &Setup) -> AgentWord {
    let odd = matches!(&word, AgentWord::Session(id) if !setup.vendor_id.accepts(id));
    if odd { AgentWord::Note(LogNote::OddSession) } else { word }
}

/// Returns the text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    note::short(text.unwrap_or("without a word"), LONGEST_PANIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::LogNote;
    use crate::observation::Activity;
    use crate::state::tests::Fragile;

    fn mind() -> Mind {
        let state = TranslatorState::Fragile(Fragile::default());
        Mind { setup: Setup::default(), ledger: RunLedger::default(), state }
    }

    fn told(mind: &mut Mind, line: &str) -> Vec<Observation> {
        let mut told = Vec::new();
        mind.hear(TranslatorInput::Line { bytes: line.as_bytes(), began: 0 }, Wall(0), &mut told);
        told
    }

    #[test]
    fn a_translator_that_panics_costs_one_line_and_what_is_known_of_the_activity() {
        let mut mind = mind();
        let ready = [Observation::Ready, Observation::Activity(Activity::Idle)];
        assert_eq!(told(&mut mind, "ready"), ready);
        let note = LogNote::Panicked { text: "no such line".into() };
        let failed = [Observation::Note(note), Observation::Activity(Activity::Unknown)];
        assert_eq!(told(&mut mind, "panic"), failed);
        assert_eq!(
            mind.state,
            TranslatorState::Fragile(Fragile { lines: 1, load: String::new() }),
            "as before that line"
        );
        assert_eq!(told(&mut mind, "more"), []);
        let began = told(&mut mind, "began");
        assert_eq!(began.last(), Some(&Observation::Activity(Activity::Working)));
    }

    #[test]
    fn a_translator_that_always_panics_is_not_told_of_without_end() {
        let mut mind = mind();
        let notes = (0..100).flat_map(|_| told(&mut mind, "panic"));
        let notes = notes.filter(|told| matches!(told, Observation::Note(_))).count();
        assert_eq!(notes, usize::from(note::MOST));
    }

    #[test]
    fn a_translator_that_panics_says_nothing() {
        assert_eq!(mind().say(1, &Intent::Close), Err(CannotSay::Panicked));
    }

    #[test]
    fn a_state_that_does_not_fit_is_given_up_and_concludes_nothing() {
        let mut mind = mind();
        told(&mut mind, "ready");
        for (bytes, given_up) in [(1_000, false), (3 << 20, true)] {
            told(&mut mind, &"x".repeat(bytes));
            let place = crate::cursor::FoldPosition { run: pinfold_core::RunNumber(3), to: 77 };
            let between = crate::lines::LineProgress::Between;
            let text = crate::cursor::write(place, between, between, &mind);
            assert!(text.len() <= crate::LONGEST_CURSOR);
            let read = crate::cursor::read(&text).unwrap();
            assert_eq!((read.place, read.state.is_unknown()), (place, given_up));
        }
    }
}
