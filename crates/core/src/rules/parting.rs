//! How an agent that is spoken to is asked to leave: by word first, by a signal after that, all of it within the grace.
//!
//! A signal in the middle of a turn loses what the agent has not written down; a closed input alone lets some finish a turn of any
//! length. So the turn is ended first, the input closed, and the signal comes last.

use std::time::Duration;

/// Nobody waits longer than this for the end of a turn that was interrupted.
const LONGEST_TURN: Duration = Duration::from_secs(1);
/// One that is parked has this long to leave by itself once its input is closed: nobody waits for it.
const LONGEST_LEAVE: Duration = Duration::from_secs(1);

/// What is said to an agent that is to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// End the turn.
    Interrupt,
    /// Nothing more will come.
    Close,
}

/// The first word, and how long it is waited for what it leads to. After no time at all the signal follows at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting {
    /// What is said.
    pub word: Word,
    /// How long to wait then.
    pub wait: Duration,
}

/// Whether somebody waits for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// A person or another run does.
    Yes,
    /// It is parked: nobody has needed it for a while.
    No,
}

/// How to part with an agent; nothing where there is no time for words.
#[must_use]
pub fn begin(in_turn: bool, awaited: Awaited, grace: Duration) -> Option<Parting> {
    // Most of the grace is left for whoever hears no words.
    let at_most = |longest: Duration| longest.min(grace / 2);
    if grace.is_zero() {
        return None;
    }
    if in_turn {
        return Some(Parting { word: Word::Interrupt, wait: at_most(LONGEST_TURN) });
    }
    let wait = match awaited {
        Awaited::Yes => Duration::ZERO,
        Awaited::No => at_most(LONGEST_LEAVE),
    };
    Some(Parting { word: Word::Close, wait })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_interrupted_what_is_parked_may_leave_and_the_rest_is_told_at_once() {
        let ms = Duration::from_millis;
        let rows = [
            (true, Awaited::Yes, ms(10_000), Some((Word::Interrupt, ms(1_000)))),
            (true, Awaited::No, ms(10_000), Some((Word::Interrupt, ms(1_000)))),
            (true, Awaited::Yes, ms(500), Some((Word::Interrupt, ms(250)))),
            (false, Awaited::No, ms(10_000), Some((Word::Close, ms(1_000)))),
            (false, Awaited::No, ms(1_000), Some((Word::Close, ms(500)))),
            (false, Awaited::Yes, ms(10_000), Some((Word::Close, ms(0)))),
            (true, Awaited::Yes, ms(0), None),
            (false, Awaited::No, ms(0), None),
        ];
        for (in_turn, awaited, grace, wanted) in rows {
            let parting = begin(in_turn, awaited, grace).map(|parting| (parting.word, parting.wait));
            assert_eq!(parting, wanted, "{in_turn} {awaited:?} {grace:?}");
        }
    }
}
