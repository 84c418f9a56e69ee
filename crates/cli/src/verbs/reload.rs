//! `reload`: makes the daemon read config.toml again.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, say, talk};
use clap::Args;
use pinfold_api::endpoint;
use serde_json::json;

/// Takes nothing.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Reload {}

impl DaemonVerb for Reload {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let reloaded = daemon.client()?.ask(&endpoint::Reload::call())?;
        if daemon.global.json {
            say(&json!(reloaded));
        } else if !daemon.global.quiet {
            talk(&format!("{} is in force; sessions follow with their next run", reloaded.config));
        }
        Ok(())
    }
}
