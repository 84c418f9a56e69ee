//! Answers: objects as JSON, errors as error objects with their status.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use pinfold_api::error::ErrorEnvelope;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::Refusal;

/// An error on its way to the client.
pub(crate) struct Failure(pub(crate) ErrorBody);

pub(crate) type Answered<T> = Result<Json<T>, Failure>;

impl From<ErrorBody> for Failure {
    fn from(body: ErrorBody) -> Failure {
        Failure(body)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(ErrorEnvelope { error: self.0 })).into_response()
    }
}

pub(crate) async fn no_such_place() -> Failure {
    Failure(ErrorBody::new(ErrorKind::NotFound, "there is nothing at this address").hint("GET /v1/status"))
}

/// A body that is not what was expected.
pub(crate) fn unreadable(error: &serde_json::Error) -> Failure {
    Failure(ErrorBody::new(ErrorKind::Usage, format!("the request cannot be read: {error}")))
}

/// A refusal of the core, in words and with what to do.
pub(crate) fn refusal(name: &str, refusal: Refusal) -> Failure {
    let (kind, message, hint) = match refusal {
        Refusal::Archived => (
            ErrorKind::Archived,
            format!("session `{name}` is archived"),
            format!("`pinfold restore {name}` brings it back"),
        ),
        Refusal::BeingArchived => {
            (ErrorKind::Archived, format!("session `{name}` is being archived"), String::new())
        }
        Refusal::BeingStopped => (
            ErrorKind::Failed,
            format!("session `{name}` is being stopped"),
            format!("`pinfold start {name}` starts it again"),
        ),
        Refusal::NotArchived => {
            (ErrorKind::Failed, format!("session `{name}` is not archived"), String::new())
        }
        Refusal::Busy => (
            ErrorKind::Busy,
            format!("somebody else holds the lock of session `{name}`"),
            format!("`pinfold why {name}` says who"),
        ),
        Refusal::GoingDown => (ErrorKind::Unavailable, "the daemon is going down".into(), String::new()),
        Refusal::ShimMute => (
            ErrorKind::Busy,
            format!("the shim of session `{name}` holds its lock and does not answer"),
            format!("`pinfold unlock session:{name} --kill` ends it"),
        ),
        Refusal::NoTerminal => {
            (ErrorKind::Failed, format!("session `{name}` has no terminal program"), String::new())
        }
        Refusal::RunsOnce => (ErrorKind::Failed, format!("session `{name}` runs once only"), String::new()),
        Refusal::NoTurn => {
            (ErrorKind::Failed, format!("session `{name}` has no turn under way"), String::new())
        }
        Refusal::NoSuchMessage => (ErrorKind::NotFound, "there is no such message".into(), String::new()),
        Refusal::Connected => (ErrorKind::Busy, format!("somebody is connected to `{name}`"), String::new()),
        Refusal::TurnUnderWay => (ErrorKind::Busy, format!("`{name}` has a turn under way"), String::new()),
        Refusal::MessageQueued => (ErrorKind::Busy, format!("`{name}` has a message queued"), String::new()),
        Refusal::Own => (ErrorKind::Busy, format!("`{name}` is the session that asks"), String::new()),
    };
    let body = ErrorBody::new(kind, message);
    Failure(if hint.is_empty() { body } else { body.hint(hint) })
}
