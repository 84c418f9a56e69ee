//! `metrics`: what the daemon counts and measures.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Kind, say};
use clap::Args;
use pinfold_api::{ClientError, endpoint};
use serde_json::Value;

/// Nothing to choose.
#[derive(Debug, Args)]
pub(crate) struct Metrics {}

impl DaemonVerb for Metrics {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let client = daemon.client()?;
        if daemon.global.json {
            let text = client.text(&endpoint::Metrics::call())?;
            say(&serde_json::from_slice::<Value>(&text).map_err(ClientError::Garbled)?);
            return Ok(());
        }
        for line in client.lines(&endpoint::MetricsText::call())? {
            say(&line.map_err(|error| Failure::from_error(Kind::Unavailable, &error))?);
        }
        Ok(())
    }
}
