//! What a turn used, from what its agent reports: figures of the turn, of the whole conversation, or of both.
//!
//! Totals continue over resumes and include what the vendor's own terminal program used in between, which is
//! not reported otherwise. A total lower than the last one is a new count.

use crate::usage::{Figures, Money};

/// Returns what was used, and the totals to compare the next report with.
#[must_use]
pub fn count(turn: Figures, total: Figures, last: Figures) -> (Figures, Figures) {
    let spent = Figures {
        input: figure(turn.input, total.input, last.input),
        output: figure(turn.output, total.output, last.output),
        cached: figure(turn.cached, total.cached, last.cached),
        cost: figure(amount(turn.cost), amount(total.cost), amount(last.cost)).map(Money),
    };
    let totals = Figures {
        input: total.input.or(last.input),
        output: total.output.or(last.output),
        cached: total.cached.or(last.cached),
        cost: total.cost.or(last.cost),
    };
    (spent, totals)
}

fn amount(cost: Option<Money>) -> Option<u64> {
    cost.map(|cost| cost.0)
}

/// Counts one figure. A conversation that did not begin here has an earlier total, so the first total counts
/// only if there is no figure of the turn.
fn figure(turn: Option<u64>, total: Option<u64>, last: Option<u64>) -> Option<u64> {
    match (turn, total, last) {
        (turn, None, _) => turn,
        (Some(turn), Some(_), None) => Some(turn),
        (None, Some(total), None) => Some(total),
        // Whatever exceeds the turn was used between two reports.
        (turn, Some(total), Some(last)) if total >= last => Some((total - last).max(turn.unwrap_or(0))),
        (turn, Some(total), Some(_)) => Some(turn.unwrap_or(total)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_takes_what_is_told_of_it_or_what_the_total_has_grown_by() {
        // Columns: turn, total, last total; counted.
        let rows = [
            (Some(5), None, None, Some(5)),
            (None, None, Some(9), None),
            // The first total: of a conversation that began elsewhere, only the turn is ours.
            (Some(5), Some(105), None, Some(5)),
            (None, Some(105), None, Some(105)),
            // The cumulative costs of LESSONS: 3.23, 3.48, 3.71.
            (None, Some(348), Some(323), Some(25)),
            (None, Some(371), Some(348), Some(23)),
            (Some(25), Some(348), Some(323), Some(25)),
            // A terminal program used 20 in between.
            (Some(5), Some(130), Some(105), Some(25)),
            // The agent was killed before it saved its total: it continues from an earlier one.
            (Some(5), Some(107), Some(105), Some(5)),
            (Some(2), Some(104), Some(105), Some(2)),
            // A new count, as after `/clear`.
            (None, Some(7), Some(105), Some(7)),
            (Some(7), Some(7), Some(105), Some(7)),
            (Some(0), Some(105), Some(105), Some(0)),
        ];
        for (turn, total, last, expected) in rows {
            assert_eq!(figure(turn, total, last), expected, "{turn:?} {total:?} {last:?}");
        }
    }

    #[test]
    fn a_total_that_is_not_told_is_kept_from_before() {
        let told = |input, cost| Figures { input, cost, ..Figures::default() };
        let last = told(Some(10), Some(Money(7)));
        let (spent, totals) = count(Figures::default(), told(Some(12), None), last);
        assert_eq!((spent, totals), (told(Some(2), None), told(Some(12), Some(Money(7)))));
    }
}
