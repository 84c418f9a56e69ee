//! What a handler may read: the query and the body that its endpoint declares, and nothing else.

use super::Context;
use super::answer::{Asked, Named, Said};
use super::server::Peer;
use axum::extract::{Path, Request};
use axum::http::HeaderMap;
use pinfold_api::endpoint::Endpoint;

/// One argument of a handler.
pub(crate) trait Argument<E> {}

impl<E: Endpoint<Query = Q>, Q> Argument<E> for Asked<Q> {}
impl<E: Endpoint<Body = B>, B> Argument<E> for Said<B> {}
impl<E> Argument<E> for Context {}
impl<E> Argument<E> for Named {}
impl<E, T> Argument<E> for Path<T> {}
impl<E> Argument<E> for HeaderMap {}
impl<E> Argument<E> for Peer {}
/// The handler reads the body itself, with its own limits and errors.
impl<E> Argument<E> for Request {}

/// All arguments of a handler. `M` is axum's own marker.
pub(crate) trait Reads<E> {}

impl<E> Reads<E> for ((),) {}
impl<E, M, A: Argument<E>> Reads<E> for (M, A) {}
impl<E, M, A: Argument<E>, B: Argument<E>> Reads<E> for (M, A, B) {}
impl<E, M, A: Argument<E>, B: Argument<E>, C: Argument<E>> Reads<E> for (M, A, B, C) {}
impl<E, M, A: Argument<E>, B: Argument<E>, C: Argument<E>, D: Argument<E>> Reads<E> for (M, A, B, C, D) {}
