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
}
