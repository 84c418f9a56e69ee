//! What an address is, for code that lists all of them: the daemon's routes and the OpenAPI document.

use super::form::AnswerForm;
use super::schema::Describe;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of HTTP")]
pub enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    /// Returns it as it is written in a request.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Delete => "DELETE",
        }
    }
}

/// One method of one address.
#[derive(Debug, Clone, Copy)]
pub struct EndpointDescription {
    /// The HTTP method.
    pub method: Method,
    /// The address; the caller fills what is in braces.
    pub path: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The schema of the query, after the `?`.
    pub query: Option<Describe>,
    /// The schema of the body.
    pub body: Option<Describe>,
    /// The form of the answer.
    pub form: AnswerForm,
    /// The schema of the objects in the answer.
    pub answer: Describe,
    /// The error statuses of this address alone, in addition to those that follow from what it takes.
    pub errors: &'static [u16],
}

impl EndpointDescription {
    /// Returns the error statuses that a request to it may be answered with.
    #[must_use]
    pub fn statuses(&self) -> Vec<u16> {
        // The daemon may fail or go down during any request.
        let mut all = vec![500, 503];
        all.extend(self.errors);
        // The sign of life and the API's description are for every caller.
        if !["/v1/ping", "/v1/openapi.json"].contains(&self.path) {
            all.push(403);
        }
        if self.path.contains("/v1/sessions/{session}") {
            all.extend([400, 404]);
        }
        if self.query.is_some() {
            all.push(400);
        }
        if self.body.is_some() {
            all.extend([400, 408, 413, 422]);
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}
