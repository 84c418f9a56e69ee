//! Answers: objects as JSON, errors as error objects with their status.

use crate::define::bad_definition::BadDefinition;
use crate::define::config::reading::nearest;
use crate::engine::WhyNot;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use pinfold_api::error::ErrorEnvelope;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::Refusal;
use pinfold_core::inbox::MOST_QUEUED;
use pinfold_core::quoted::quoted;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// An error on its way to the client.
pub(crate) struct Failure {
    body: ErrorBody,
    status: u16,
}

pub(crate) type Answered<T> = Result<Json<T>, Failure>;

impl From<ErrorBody> for Failure {
    fn from(body: ErrorBody) -> Failure {
        Failure { status: body.kind.status(), body }
    }
}

impl From<BadDefinition> for Failure {
    fn from(bad: BadDefinition) -> Failure {
        Failure::bad_value(bad.into())
    }
}

impl From<WhyNot> for Failure {
    fn from(why: WhyNot) -> Failure {
        ErrorBody::from(why).into()
    }
}

impl Failure {
    /// The request was understood, but something in it cannot be.
    pub(crate) fn bad_value(body: ErrorBody) -> Failure {
        let status = if body.kind == ErrorKind::Usage { UNPROCESSABLE } else { body.kind.status() };
        Failure { body, status }
    }

    /// The state of a session does not allow it: nothing is wrong with the daemon.
    pub(crate) fn conflict(why: impl Into<ErrorBody>) -> Failure {
        let body = why.into();
        let failed = body.kind == ErrorKind::Failed;
        Failure { status: if failed { CONFLICT } else { body.kind.status() }, body }
    }

    /// The error object.
    #[cfg(test)]
    pub(crate) fn into_body(self) -> ErrorBody {
        self.body
    }

    /// There is only so much for each.
    pub(crate) fn too_many(body: ErrorBody) -> Failure {
        Failure { body, status: StatusCode::TOO_MANY_REQUESTS.as_u16() }
    }

    pub(crate) fn usage(message: impl Into<String>, status: u16) -> Failure {
        Failure { body: ErrorBody::new(ErrorKind::Usage, message), status }
    }

    pub(crate) fn with_status(body: ErrorBody, status: u16) -> Failure {
        Failure { body, status }
    }
}

const CONFLICT: u16 = 409;
const UNPROCESSABLE: u16 = 422;

/// 2 MiB take milliseconds; a client that needs longer must not keep anything waiting.
const BODY_WITHIN: Duration = Duration::from_secs(10);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(ErrorEnvelope { error: self.body })).into_response()
    }
}

pub(crate) async fn no_such_place(uri: Uri) -> Failure {
    // No session has the empty name, and with it there is no such address.
    if uri.path().strip_prefix("/v1/sessions/").is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return WhyNot::Unknown { wanted: String::new() }.into();
    }
    ErrorBody::new(ErrorKind::NotFound, "there is nothing at this address").hint("GET /v1/status").into()
}

pub(crate) async fn no_such_method() -> Failure {
    Failure::usage("this address takes another method", StatusCode::METHOD_NOT_ALLOWED.as_u16())
}

/// How large the body of a request may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Largest(pub(crate) usize);

/// What a request says in its body; an empty one says nothing.
pub(crate) struct Said<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Said<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _state: &S) -> Result<Said<T>, Failure> {
        let bytes = body(request).await?;
        parse(if bytes.is_empty() { b"{}" } else { &bytes }).map(Said)
    }
}

/// The whole body of a request, if it comes in time and is not too large.
pub(crate) async fn body(request: Request) -> Result<Bytes, Failure> {
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let largest = request.extensions().get().map_or(usize::MAX, |Largest(largest)| *largest);
    if announced.is_some_and(|length: usize| length > largest) {
        return Err(too_large());
    }
    let bytes = tokio::time::timeout(BODY_WITHIN, Bytes::from_request(request, &()));
    bytes.await.map_err(|_| slow())?.map_err(|refused| unread(&refused))
}

/// What a body says.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|error| misread(&error))
}

fn slow() -> Failure {
    let message = format!("the body of the request did not come within {} s", BODY_WITHIN.as_secs());
    ErrorBody::new(ErrorKind::Timeout, message).into()
}

fn too_large() -> Failure {
    Failure::usage("the body of the request is too large: most have 2 MiB at most", 413)
}

fn unread(refused: &BytesRejection) -> Failure {
    match refused.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        _ => Failure::usage("the body of the request ended too early, or is not what its head says", 400),
    }
}

/// What is no JSON is a mistake of the program; what is none of the fields, or has a wrong type, is a bad value.
fn misread(error: &serde_json::Error) -> Failure {
    let message = format!("the request cannot be read: {error}");
    if !error.is_data() {
        return Failure::usage(message, 400);
    }
    let text = error.to_string();
    match text.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        Some((field, known)) => Failure::usage(no_field(field, known), UNPROCESSABLE),
        None => Failure::usage(message, UNPROCESSABLE),
    }
}

/// serde names the fields that it knows, in backticks.
fn no_field(field: &str, known: &str) -> String {
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    if known.is_empty() {
        return format!("there is no field `{field}`");
    }
    format!("there is no field `{field}`; the nearest one is `{}`", nearest(field, &known))
}

/// What a request asks for behind the `?`.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, Failure> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Asked(asked)).map_err(|refused| Failure::usage(refused.body_text(), 400))
    }
}

/// The session that an address names.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named, Failure> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Named(name)).map_err(|refused| Failure::usage(refused.body_text(), 400))
    }
}

/// A refusal of the core, in words and with what to do.
pub(crate) fn refusal(name: &str, refusal: Refusal) -> Failure {
    Failure::conflict(refusal_body(name, refusal))
}

/// The same, as the error object.
pub(crate) fn refusal_body(name: &str, refusal: Refusal) -> ErrorBody {
    let (kind, message) = refused(name, refusal);
    let body = ErrorBody::new(kind, message);
    match way_out(name, refusal) {
        Some(hint) => body.hint(hint),
        None => body,
    }
}

/// What is refused, in words.
fn refused(name: &str, refusal: Refusal) -> (ErrorKind, String) {
    match refusal {
        Refusal::Archived => (ErrorKind::Archived, format!("session `{name}` is archived")),
        Refusal::BeingArchived => (ErrorKind::Archived, format!("session `{name}` is being archived")),
        Refusal::BeingStopped => (ErrorKind::Failed, format!("session `{name}` is being stopped")),
        Refusal::Stopped => (ErrorKind::Failed, format!("session `{name}` is stopped")),
        Refusal::Failed => (ErrorKind::Failed, format!("session `{name}` needs attention")),
        Refusal::NotArchived => (ErrorKind::Failed, format!("session `{name}` is not archived")),
        Refusal::Busy => (ErrorKind::Busy, format!("another process holds the lock of session `{name}`")),
        Refusal::GoingDown => (ErrorKind::Unavailable, "the daemon is going down".into()),
        Refusal::ShimMute => {
            (ErrorKind::Busy, format!("the shim of session `{name}` holds its lock and does not answer"))
        }
        Refusal::NoTerminal => (ErrorKind::Failed, format!("session `{name}` has no terminal program")),
        Refusal::RunsOnce => (ErrorKind::Failed, format!("session `{name}` runs once only")),
        Refusal::NoTurn => (ErrorKind::Failed, format!("session `{name}` has no turn under way")),
        Refusal::NoSuchMessage => (ErrorKind::NotFound, "there is no such message".into()),
        Refusal::NoSuchRequest => {
            (ErrorKind::Busy, format!("session `{name}` asks nothing that is still open"))
        }
        Refusal::InboxFull => {
            (ErrorKind::Busy, format!("the inbox of session `{name}` is full: {MOST_QUEUED} messages wait"))
        }
        Refusal::InboxHeavy => {
            let heavy = "its messages have as much text as may wait there";
            (ErrorKind::Busy, format!("the inbox of session `{name}` is full: {heavy}"))
        }
        Refusal::NotAnArgument => {
            let most = "no zero byte and no more than 120 KiB";
            (
                ErrorKind::Usage,
                format!("the agent of `{name}` gets a message as an argument, which has {most}"),
            )
        }
        Refusal::Connected => (ErrorKind::Busy, format!("a client is connected to `{name}`")),
        Refusal::TurnUnderWay => (ErrorKind::Busy, format!("`{name}` has a turn under way")),
        Refusal::MessageQueued => (ErrorKind::Busy, format!("`{name}` has a message queued")),
        Refusal::Own => (ErrorKind::Busy, format!("`{name}` is the session that asks")),
    }
}

/// What helps, where something does.
fn way_out(name: &str, refusal: Refusal) -> Option<String> {
    let verb = |verb: &str, does: &str| Some(format!("`pinfold {verb} {}` {does}", quoted(name)));
    match refusal {
        Refusal::Archived => verb("restore", "brings it back"),
        Refusal::BeingStopped => verb("start", "starts it again"),
        Refusal::Stopped => verb("start", "starts it"),
        Refusal::Failed => {
            let own = quoted(name);
            Some(format!("`pinfold start {own}` tries again; `pinfold logs {own}` tells more"))
        }
        Refusal::Busy => verb("why", "says who"),
        Refusal::ShimMute => {
            let lock = format!("session:{name}");
            Some(format!("`pinfold unlock {} --kill` ends it", quoted(&lock)))
        }
        Refusal::InboxFull => verb("why", "says what they wait for"),
        Refusal::InboxHeavy => {
            verb("why", "says what they wait for; `inbox_limit` in config.toml is how much may")
        }
        Refusal::NotAnArgument => {
            Some("put it into a file and send its path; an agent that reads standard input gets any with `prompt = \"stdin\"` in its [agents.NAME.exec]".to_owned())
        }
        Refusal::BeingArchived
        | Refusal::NotArchived
        | Refusal::GoingDown
        | Refusal::NoTerminal
        | Refusal::RunsOnce
        | Refusal::NoTurn
        | Refusal::NoSuchMessage
        | Refusal::NoSuchRequest
        | Refusal::Connected
        | Refusal::TurnUnderWay
        | Refusal::MessageQueued
        | Refusal::Own => None,
    }
}

#[cfg(test)]
mod tests;
