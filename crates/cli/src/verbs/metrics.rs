//! `pinfold metrics`: what the daemon counts and measures.

use super::say;
use crate::args::Global;
use crate::connect;
use crate::error::{Failure, Kind};
use serde_json::Value;

pub(crate) fn run(global: &Global) -> Result<(), Failure> {
    let client = connect::client(global)?;
    if global.json {
        say(&client.get::<Value>("/v1/metrics")?);
        return Ok(());
    }
    for line in client.lines("/metrics")? {
        say(&line.map_err(|error| Failure::from_error(Kind::Unavailable, &error))?);
    }
    Ok(())
}
