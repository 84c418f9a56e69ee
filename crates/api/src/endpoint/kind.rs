//! What every endpoint has.

use super::description::Description;
use super::form::Answer;

/// One method of one address: its query, its body, and its answer.
pub trait Endpoint {
    /// What it is asked, after the `?`.
    type Query;
    /// What it is sent in the body.
    type Body;
    /// What it answers.
    type Answer: Answer;
    /// The same as data, for code that lists all endpoints.
    const DESCRIPTION: Description;
}
