//! Which turns are under way, and how a reported end counts.

use crate::turn::{Delivery, TurnOutcome};
use crate::word::How;
use serde::{Deserialize, Serialize};

/// One agent is never given more: one turn runs at a time.
const MOST_OPEN: usize = 64;

/// The turns of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OpenTurns {
    open: Vec<OpenDelivery>,
    /// Whether the agent is on a turn of its own.
    own: bool,
    /// An interrupt was said when no turn was open; it may end the next one.
    crossed: bool,
}

/// A delivery that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenDelivery {
    pub(crate) delivery: Delivery,
    /// The number of the word that said it.
    pub(crate) number: u64,
    /// Position on the tape where it was said.
    pub(crate) since: u64,
    pub(crate) taken: bool,
    pub(crate) began: bool,
    /// An interrupt was said afterwards.
    pub(crate) interrupted: bool,
}

impl OpenTurns {
    /// Records a prompt.
    pub(crate) fn prompted(&mut self, delivery: Delivery, number: u64, since: u64) {
        self.open.truncate(MOST_OPEN - 1);
        self.open.push(OpenDelivery {
            delivery,
            number,
            since,
            taken: false,
            began: false,
            interrupted: false,
        });
    }

    /// Records an interrupt.
    pub(crate) fn interrupted(&mut self) {
        self.crossed |= self.open.is_empty() && !self.own;
        self.open.iter_mut().for_each(|open| open.interrupted = true);
    }

    pub(crate) fn open(&self) -> &[OpenDelivery] {
        &self.open
    }

    pub(crate) fn under_way(&self) -> bool {
        self.own || !self.open.is_empty()
    }

    /// Returns the delivery whose turn it is now; `None` for the agent's own turn.
    pub(crate) fn current(&self) -> Option<Delivery> {
        if self.own { None } else { self.open.first().map(|open| open.delivery) }
    }

    /// The agent has this prompt; returns its delivery the first time.
    pub(crate) fn taken(&mut self, number: u64) -> Option<Delivery> {
        let open = self.open.iter_mut().find(|open| open.number == number && !open.taken)?;
        open.taken = true;
        Some(open.delivery)
    }

    /// The turn of this prompt began; returns its delivery the first time.
    pub(crate) fn began(&mut self, number: u64) -> Option<Delivery> {
        let open = self.open.iter_mut().find(|open| open.number == number && !open.began)?;
        open.began = true;
        Some(open.delivery)
    }

    /// The agent began a turn of its own; returns whether that is new.
    pub(crate) fn own_began(&mut self) -> bool {
        !std::mem::replace(&mut self.own, true)
    }

    /// The turn of this prompt ended; returns its delivery and outcome.
    pub(crate) fn ended(&mut self, number: u64, how: How) -> Option<(Delivery, TurnOutcome)> {
        let at = self.open.iter().position(|open| open.number == number)?;
        let OpenDelivery { delivery, interrupted, .. } = self.open.remove(at);
        Some((delivery, self.judge(how, interrupted)))
    }

    /// A turn of the agent's own ended.
    pub(crate) fn own_ended(&mut self, how: How) -> TurnOutcome {
        self.own = false;
        match how {
            How::Cancelled => TurnOutcome::CancelledUnasked { crossed: std::mem::take(&mut self.crossed) },
            How::Failed(failure) => TurnOutcome::Failed(failure),
            How::Done => TurnOutcome::Done,
        }
    }

    /// Removes a delivery that is over for a reason that is not on the tape.
    pub(crate) fn let_go(&mut self, delivery: Delivery) {
        self.open.retain(|open| open.delivery != delivery);
    }

    /// Judges an end. An interrupt that did not end its turn is still on its way; one that ended another turn
    /// is not. Of two interrupts, one ends a turn.
    fn judge(&mut self, how: How, interrupted: bool) -> TurnOutcome {
        let left = if how == How::Cancelled { self.crossed && interrupted } else { interrupted };
        let crossed = std::mem::replace(&mut self.crossed, left);
        match how {
            How::Done => TurnOutcome::Done,
            How::Failed(failure) => TurnOutcome::Failed(failure),
            How::Cancelled if interrupted => TurnOutcome::Interrupted,
            How::Cancelled => TurnOutcome::CancelledUnasked { crossed },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::MessageId;

    /// What can happen to turns.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Prompt(u64),
        Interrupt,
        Done(u64),
        Cancelled(u64),
        OwnBegan,
        OwnCancelled,
    }

    fn outcome(turns: &mut OpenTurns, step: Step) -> Option<TurnOutcome> {
        let delivery = |number| Delivery { message: MessageId(1), delivery: number };
        match step {
            Step::Prompt(number) => turns.prompted(delivery(number), number, 0),
            Step::Interrupt => turns.interrupted(),
            Step::OwnBegan => assert!(turns.own_began()),
            Step::Done(number) => return turns.ended(number, How::Done).map(|(_, outcome)| outcome),
            Step::Cancelled(number) => {
                return turns.ended(number, How::Cancelled).map(|(_, outcome)| outcome);
            }
            Step::OwnCancelled => return Some(turns.own_ended(How::Cancelled)),
        }
        None
    }

    #[test]
    fn a_cancelled_turn_is_interrupted_only_if_that_was_asked_in_it() {
        use Step::*;
        let unasked = |crossed| Some(TurnOutcome::CancelledUnasked { crossed });
        let rows: [(&[Step], Option<TurnOutcome>); 11] = [
            (&[Prompt(1), Interrupt, Cancelled(1)], Some(TurnOutcome::Interrupted)),
            (&[Prompt(1), Cancelled(1)], unasked(false)),
            // The interrupt crossed the end of its turn, and hits the next one.
            (&[Prompt(1), Interrupt, Done(1), Prompt(2), Cancelled(2)], unasked(true)),
            (
                &[Prompt(1), Interrupt, Done(1), Prompt(2), Interrupt, Cancelled(2)],
                Some(TurnOutcome::Interrupted),
            ),
            // Two interrupts were on their way: one ended a turn, the other hits the next one.
            (
                &[Prompt(1), Interrupt, Done(1), Prompt(2), Interrupt, Cancelled(2), Prompt(3), Cancelled(3)],
                unasked(true),
            ),
            (&[Interrupt, Prompt(1), Cancelled(1)], unasked(true)),
            // An interrupt hits only one turn, and none after another turn has gone well.
            (&[Interrupt, Prompt(1), Cancelled(1), Prompt(2), Cancelled(2)], unasked(false)),
            (&[Interrupt, Prompt(1), Done(1), Prompt(2), Cancelled(2)], unasked(false)),
            (&[Interrupt, OwnBegan, OwnCancelled, Prompt(1), Cancelled(1)], unasked(false)),
            // Ends that are reported twice, or for turns that never existed.
            (&[Prompt(1), Done(1), Done(1)], None),
            (&[Prompt(1), Done(2)], None),
        ];
        for (steps, expected) in rows {
            let mut turns = OpenTurns::default();
            let last = steps.iter().map(|step| outcome(&mut turns, *step)).last().unwrap();
            assert_eq!(last, expected, "{steps:?}");
        }
    }
}
