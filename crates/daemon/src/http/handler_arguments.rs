//! What a handler may read: the query and the body that its endpoint declares, and nothing else.

use super::HttpContext;
use super::extract::{JsonBody, SessionInPath, UrlQuery};
use super::server::ConnectionPeer;
use axum::extract::{Path, Request};
use axum::http::HeaderMap;
use pinfold_api::endpoint::Endpoint;

/// One argument of a handler.
pub(crate) trait Argument<E> {}

impl<E: Endpoint<Query = Q>, Q> Argument<E> for UrlQuery<Q> {}
impl<E: Endpoint<Body = B>, B> Argument<E> for JsonBody<B> {}
impl<E> Argument<E> for HttpContext {}
impl<E> Argument<E> for SessionInPath {}
impl<E, T> Argument<E> for Path<T> {}
impl<E> Argument<E> for HeaderMap {}
impl<E> Argument<E> for ConnectionPeer {}
/// The handler reads the body itself, with its own limits and errors.
impl<E> Argument<E> for Request {}

/// All arguments of a handler. `M` is axum's own marker.
pub(crate) trait HandlerArguments<E> {}

impl<E> HandlerArguments<E> for ((),) {}
impl<E, M, A: Argument<E>> HandlerArguments<E> for (M, A) {}
impl<E, M, A: Argument<E>, B: Argument<E>> HandlerArguments<E> for (M, A, B) {}
impl<E, M, A: Argument<E>, B: Argument<E>, C: Argument<E>> HandlerArguments<E> for (M, A, B, C) {}
impl<E, M, A: Argument<E>, B: Argument<E>, C: Argument<E>, D: Argument<E>> HandlerArguments<E>
    for (M, A, B, C, D)
{
}
