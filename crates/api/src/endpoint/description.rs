//! What an address is, for those who list all of them: the daemon's routes and the OpenAPI document.

use super::form::Form;
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
    /// As it stands in a request.
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
pub struct Description {
    /// The method.
    pub method: Method,
    /// The address; what is in braces is the caller's to say.
    pub path: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What may stand behind the `?`.
    pub query: Option<Describe>,
    /// What the body says.
    pub body: Option<Describe>,
    /// The form of the answer.
    pub form: Form,
    /// What is in the answer.
    pub answer: Describe,
    /// The statuses of errors that are this address's own, beside those that come with what it takes.
    pub errors: &'static [u16],
}

impl Description {
    /// The statuses of errors that a request to it may be answered with.
    #[must_use]
    pub fn statuses(&self) -> Vec<u16> {
        // The daemon may fail, or go down, under every request.
        let mut all = vec![500, 503];
        all.extend(self.errors);
        // A sign of life, and what can be asked, are for everybody.
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
