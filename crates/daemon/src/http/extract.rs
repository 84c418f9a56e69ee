//! What handlers read from a request: its body, its query and the session in its path.

use super::api_error::{ApiError, UNPROCESSABLE};
use crate::define::config::reading::nearest;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use pinfold_api::{ErrorBody, ErrorKind};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// 2 MiB take milliseconds; a client that needs longer must not keep anything waiting.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// How large the body of a request may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Largest(pub(crate) usize);

/// The body of a request, read as JSON; an empty body counts as an empty object.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<JsonBody<T>, ApiError> {
        let bytes = body(request).await?;
        parse(if bytes.is_empty() { b"{}" } else { &bytes }).map(JsonBody)
    }
}

/// The whole body of a request, if it arrives in time and is not too large.
pub(crate) async fn body(request: Request) -> Result<Bytes, ApiError> {
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let largest = request.extensions().get().map_or(usize::MAX, |Largest(largest)| *largest);
    if announced.is_some_and(|length: usize| length > largest) {
        return Err(too_large());
    }
    let bytes = tokio::time::timeout(BODY_WITHIN, Bytes::from_request(request, &()));
    bytes.await.map_err(|_| slow())?.map_err(|refused| unread(&refused))
}

/// Parses a body.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| misread(&error))
}

fn slow() -> ApiError {
    let message = format!("the body of the request did not come within {} s", BODY_WITHIN.as_secs());
    ErrorBody::new(ErrorKind::Timeout, message).into()
}

fn too_large() -> ApiError {
    ApiError::usage("the body of the request is too large: most have 2 MiB at most", 413)
}

fn unread(refused: &BytesRejection) -> ApiError {
    match refused.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        _ => ApiError::usage("the body of the request ended too early, or is not what its head says", 400),
    }
}

/// Invalid JSON is the client's bug (400); an unknown field or a wrong type is a bad value (422).
fn misread(error: &serde_json::Error) -> ApiError {
    let message = format!("the request cannot be read: {error}");
    if !error.is_data() {
        return ApiError::usage(message, 400);
    }
    let text = error.to_string();
    match text.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        Some((field, known)) => ApiError::usage(no_field(field, known), UNPROCESSABLE),
        None => ApiError::usage(message, UNPROCESSABLE),
    }
}

/// serde lists the known fields in backticks.
fn no_field(field: &str, known: &str) -> String {
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    if known.is_empty() {
        return format!("there is no field `{field}`");
    }
    format!("there is no field `{field}`; the nearest one is `{}`", nearest(field, &known))
}

/// The query of a request.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<UrlQuery<T>, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(asked)| UrlQuery(asked)).map_err(|refused| ApiError::usage(refused.body_text(), 400))
    }
}

/// The session that an address names.
pub(crate) struct SessionInPath(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for SessionInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<SessionInPath, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| SessionInPath(name))
            .map_err(|refused| ApiError::usage(refused.body_text(), 400))
    }
}

#[cfg(test)]
mod tests;
