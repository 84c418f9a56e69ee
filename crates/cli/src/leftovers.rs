//! The error for runs that should have ended and have not; it names them, whatever else was done.

use crate::output::{Failure, Kind};
use pinfold_api::object::Left;

/// Returns an error if any run is left. `done` says what was done nevertheless.
pub(crate) fn none_left(left: &[Left], done: &str, hint: &str) -> Result<(), Failure> {
    if left.is_empty() {
        return Ok(());
    }
    let each: Vec<String> =
        left.iter().map(|left| format!("session `{}`: {}", left.session, left.why)).collect();
    Err(Failure::new(Kind::Failed, format!("{done}; {}", each.join("; "))).hint(hint))
}
