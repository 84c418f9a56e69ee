//! What Claude Code means to do later by itself: its tools that plan ahead say when, and nothing else does. Until then it must
//! not be ended, because what is planned ends with the process.

use super::wire::ToolResult;
use pinfold_core::Wall;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More are not kept.
const MOST: usize = 64;
/// So long may the id of one be; those seen have 8 bytes.
const LONGEST_ID: usize = 256;
/// The one that has no id, of which there is at most one.
const WAKEUP: &str = "";
/// A plan that is over by so much did not come true.
const OVERDUE_MS: i64 = 10 * 60 * 1000;
/// It may begin a moment before its time.
const EARLY_MS: i64 = 1000;

/// What is planned, by its id.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Plans(BTreeMap<String, Plan>);

/// When, and whether again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Plan {
    at: i64,
    recurring: bool,
}

impl Plans {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A tool gave something back.
    pub(crate) fn heard(&mut self, result: &ToolResult) {
        match (result.scheduled_for.map(whole), result.next_fire_at.map(whole), &result.id) {
            // The time zero is how a loop ends.
            (Some(0), _, _) => {
                self.0.remove(WAKEUP);
            }
            (Some(at), _, _) => self.add(WAKEUP, Plan { at, recurring: false }),
            (None, Some(at), Some(id)) => {
                self.add(id, Plan { at, recurring: result.recurring.unwrap_or_default() });
            }
            // What names a plan and no time has taken it back.
            (None, None, Some(id)) => {
                self.0.remove(id);
            }
            (None, _, None) => {}
        }
    }

    fn add(&mut self, id: &str, plan: Plan) {
        if self.0.len() < MOST && id.len() <= LONGEST_ID {
            self.0.insert(id.to_owned(), plan);
        }
    }

    /// A turn of its own began as planned.
    pub(crate) fn came_true(&mut self, now: Wall) {
        self.0.retain(|_, plan| plan.recurring || plan.at > now.0.saturating_add(EARLY_MS));
    }

    /// Forgets what did not come true.
    pub(crate) fn forget(&mut self, now: Wall) {
        self.0.retain(|_, plan| plan.recurring || plan.at > now.0.saturating_sub(OVERDUE_MS));
    }
}

/// A time in whole milliseconds; it is given with parts of them.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a time that does not fit becomes the last one that does"
)]
fn whole(time: f64) -> i64 {
    time as i64
}
