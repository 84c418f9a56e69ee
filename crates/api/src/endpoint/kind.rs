//! What every endpoint has.

use super::description::EndpointDescription;
use super::form::EndpointAnswer;

/// One method of one address: its query, its body, and its answer.
pub trait Endpoint {
    /// What it is asked, after the `?`.
    type Query;
    /// What it is sent in the body.
    type Body;
    /// What it answers.
    type Answer: EndpointAnswer;
    /// The same as data, for code that lists all endpoints.
    const DESCRIPTION: EndpointDescription;
}
