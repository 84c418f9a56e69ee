//! Errors as error objects with their status.

use crate::define::bad_definition::BadDefinition;
use crate::engine::WhyNot;
use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use pinfold_api::error::ErrorEnvelope;
use pinfold_api::{ErrorBody, ErrorKind};

/// An error for the client.
pub(crate) struct ApiError {
    pub(super) body: ErrorBody,
    pub(super) status: u16,
}

pub(crate) type Answered<T> = Result<Json<T>, ApiError>;

impl From<ErrorBody> for ApiError {
    fn from(body: ErrorBody) -> ApiError {
        ApiError { status: body.kind.status(), body }
    }
}

impl From<BadDefinition> for ApiError {
    fn from(bad: BadDefinition) -> ApiError {
        ApiError::bad_value(bad.into())
    }
}

impl From<WhyNot> for ApiError {
    fn from(why: WhyNot) -> ApiError {
        ErrorBody::from(why).into()
    }
}

impl ApiError {
    /// The request was understood, but a value in it is not possible.
    pub(crate) fn bad_value(body: ErrorBody) -> ApiError {
        let status = if body.kind == ErrorKind::Usage { UNPROCESSABLE } else { body.kind.status() };
        ApiError { body, status }
    }

    /// The state of a session does not allow it: nothing is wrong with the daemon.
    pub(crate) fn conflict(why: impl Into<ErrorBody>) -> ApiError {
        let body = why.into();
        let failed = body.kind == ErrorKind::Failed;
        ApiError { status: if failed { CONFLICT } else { body.kind.status() }, body }
    }

    /// The error object.
    #[cfg(test)]
    pub(crate) fn into_body(self) -> ErrorBody {
        self.body
    }

    /// The client has reached a limit.
    pub(crate) fn too_many(body: ErrorBody) -> ApiError {
        ApiError { body, status: StatusCode::TOO_MANY_REQUESTS.as_u16() }
    }

    pub(crate) fn usage(message: impl Into<String>, status: u16) -> ApiError {
        ApiError { body: ErrorBody::new(ErrorKind::Usage, message), status }
    }

    pub(crate) fn with_status(body: ErrorBody, status: u16) -> ApiError {
        ApiError { body, status }
    }
}

const CONFLICT: u16 = 409;
pub(super) const UNPROCESSABLE: u16 = 422;

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(ErrorEnvelope { error: self.body })).into_response()
    }
}

pub(crate) async fn no_such_place(uri: Uri) -> ApiError {
    // No session has an empty name, and no address contains one.
    if uri.path().strip_prefix("/v1/sessions/").is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return WhyNot::Unknown { wanted: String::new() }.into();
    }
    ErrorBody::new(ErrorKind::NotFound, "there is nothing at this address").hint("GET /v1/status").into()
}

pub(crate) async fn no_such_method() -> ApiError {
    ApiError::usage("this address takes another method", StatusCode::METHOD_NOT_ALLOWED.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_whose_mistake_it_is() {
        let body = |kind| ErrorBody::new(kind, "m");
        let rows = [
            (ApiError::bad_value(body(ErrorKind::Usage)), 422),
            (ApiError::bad_value(body(ErrorKind::NotFound)), ErrorKind::NotFound.status()),
            (ApiError::conflict(body(ErrorKind::Failed)), 409),
            (ApiError::conflict(body(ErrorKind::NotFound)), ErrorKind::NotFound.status()),
            (ApiError::too_many(body(ErrorKind::Busy)), 429),
            (ApiError::usage("m", 405), 405),
            (ApiError::with_status(body(ErrorKind::Failed), 503), 503),
            (ApiError::from(WhyNot::Gone), ErrorKind::NotFound.status()),
        ];
        for (failure, status) in rows {
            let kind = failure.body.kind;
            assert_eq!(failure.into_response().status().as_u16(), status, "{kind:?}");
        }
    }
}
