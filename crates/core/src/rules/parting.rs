//! How an agent that speaks a protocol is asked to leave: by a request first, then by a signal, all within the grace.
//!
//! A signal in the middle of a turn loses whatever the agent has not saved; with only its input closed, some
//! agents finish a turn of any length. So the turn is ended first, then the input is closed, and the signal comes last.

use std::time::Duration;

/// The longest wait for an interrupted turn to end.
const LONGEST_TURN: Duration = Duration::from_secs(1);
/// How long a parked agent has to leave by itself once its input is closed: nothing waits for it.
const LONGEST_LEAVE: Duration = Duration::from_secs(1);

/// What an agent that is to leave is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartingWord {
    /// End the turn.
    Interrupt,
    /// Nothing more will come: its input is closed.
    Close,
}

/// The first request, and how long to wait for its effect. With a wait of zero the signal follows at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting {
    /// What the agent is told.
    pub word: PartingWord,
    /// How long to wait afterwards.
    pub wait: Duration,
}

/// Whether anything waits for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// A person or another run waits.
    Yes,
    /// Nothing waits: it is parked and has not been needed for a while.
    No,
}

/// Decides how to part with an agent; `None` if there is no time for a request.
#[must_use]
pub fn begin(in_turn: bool, awaited: Awaited, grace: Duration) -> Option<Parting> {
    // An agent that does not react to the request keeps most of the grace.
    let at_most = |longest: Duration| longest.min(grace / 2);
    if grace.is_zero() {
        return None;
    }
    if in_turn {
        return Some(Parting { word: PartingWord::Interrupt, wait: at_most(LONGEST_TURN) });
    }
    let wait = match awaited {
        Awaited::Yes => Duration::ZERO,
        Awaited::No => at_most(LONGEST_LEAVE),
    };
    Some(Parting { word: PartingWord::Close, wait })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_interrupted_what_is_parked_may_leave_and_the_rest_is_told_at_once() {
        let ms = Duration::from_millis;
        let rows = [
            (true, Awaited::Yes, ms(10_000), Some((PartingWord::Interrupt, ms(1_000)))),
            (true, Awaited::No, ms(10_000), Some((PartingWord::Interrupt, ms(1_000)))),
            (true, Awaited::Yes, ms(500), Some((PartingWord::Interrupt, ms(250)))),
            (false, Awaited::No, ms(10_000), Some((PartingWord::Close, ms(1_000)))),
            (false, Awaited::No, ms(1_000), Some((PartingWord::Close, ms(500)))),
            (false, Awaited::Yes, ms(10_000), Some((PartingWord::Close, ms(0)))),
            (true, Awaited::Yes, ms(0), None),
            (false, Awaited::No, ms(0), None),
        ];
        for (in_turn, awaited, grace, wanted) in rows {
            let parting = begin(in_turn, awaited, grace).map(|parting| (parting.word, parting.wait));
            assert_eq!(parting, wanted, "{in_turn} {awaited:?} {grace:?}");
        }
    }
}
