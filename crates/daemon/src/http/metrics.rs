//! Metrics: in the format of Prometheus, and as objects.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use crate::metrics;
use axum::Json;
use axum::response::{IntoResponse, Response};
use pinfold_api::object::Metric;
use pinfold_api::word::MetricKind;

pub(crate) async fn text(context: HttpContext) -> Result<Response, ApiError> {
    let metrics = measured(&context).await?;
    let kind = [("content-type", "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, metrics::text(&metrics)).into_response())
}

pub(crate) async fn objects(context: HttpContext) -> Answered<Vec<Metric>> {
    Ok(Json(measured(&context).await?))
}

/// The loop's metrics, and the size of the database. If that cannot be read, the rest is still good.
async fn measured(context: &HttpContext) -> Result<Vec<Metric>, ApiError> {
    let mut all = context.handle.view(|view| view.measured()).await?;
    let sizes = context.read(|reader| Ok([reader.bytes_used()?, reader.bytes_free()?, reader.disk_used()]));
    let name = "pinfold_database_bytes";
    let samples = sizes.await.map_or_else(
        |_| Vec::new(),
        |sizes| {
            let of = ["used", "free", "files"].into_iter().zip(sizes);
            of.map(|(of, bytes)| metrics::sample(name, &[("of", of)], bytes as f64)).collect()
        },
    );
    let help = "Bytes of the database: used by rows, free to be given back, and of all its files.";
    all.push(metrics::metric(name, MetricKind::Gauge, help, samples));
    Ok(all)
}
