//! What every endpoint has.

use super::description::Description;
use super::form::Answer;

/// One method of one address: what it is asked and told, and what it answers.
pub trait Endpoint {
    /// What it is asked behind the `?`.
    type Query;
    /// What it is told in the body.
    type Body;
    /// What it answers.
    type Answer: Answer;
    /// The same for those who list all of them.
    const DESCRIPTION: Description;
}
