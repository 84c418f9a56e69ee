//! Metrics: as Prometheus reads them, and as objects.

use super::Context;
use super::answer::{Answered, Failure};
use crate::metrics;
use axum::Json;
use axum::response::{IntoResponse, Response};
use pinfold_api::object::Metric;

pub(crate) async fn text(context: Context) -> Result<Response, Failure> {
    let metrics = context.handle.view(|view| view.measured()).await?;
    let kind = [("content-type", "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, metrics::text(&metrics)).into_response())
}

pub(crate) async fn objects(context: Context) -> Answered<Vec<Metric>> {
    Ok(Json(context.handle.view(|view| view.measured()).await?))
}
