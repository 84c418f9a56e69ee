//! What Claude Code plans to do later by itself; only its planning tools say when. Until then it must not be
//! ended, because its plans end with the process.

use super::wire::ToolResult;
use pinfold_core::Wall;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// No more are kept.
const MOST: usize = 64;
/// Longest id of a plan in bytes; those seen have 8.
const LONGEST_ID: usize = 256;
/// The plan without an id, of which there is at most one.
const WAKEUP: &str = "";
/// A plan overdue by this much did not come true.
const OVERDUE_MS: i64 = 10 * 60 * 1000;
/// A plan may begin a moment before its time.
const EARLY_MS: i64 = 1000;

/// The plans by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Plans(BTreeMap<String, Plan>);

/// When a plan is due, and whether it recurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Plan {
    at: i64,
    recurring: bool,
}

impl Plans {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Handles the result of a tool.
    pub(crate) fn heard(&mut self, result: &ToolResult) {
        match (result.scheduled_for.map(whole), result.next_fire_at.map(whole), &result.id) {
            // A loop ends by scheduling time zero.
            (Some(0), _, _) => {
                self.0.remove(WAKEUP);
            }
            (Some(at), _, _) => self.add(WAKEUP, Plan { at, recurring: false }),
            (None, Some(at), Some(id)) => {
                self.add(id, Plan { at, recurring: result.recurring.unwrap_or_default() });
            }
            // A result that names a plan but no time has cancelled it.
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

    /// Forgets plans that did not come true.
    pub(crate) fn forget(&mut self, now: Wall) {
        self.0.retain(|_, plan| plan.recurring || plan.at > now.0.saturating_sub(OVERDUE_MS));
    }
}

/// Returns a time in whole milliseconds; it may be given with fractions.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a time that does not fit becomes the last one that does"
)]
fn whole(time: f64) -> i64 {
    time as i64
}
