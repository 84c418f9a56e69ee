//! `interrupt`: ends the turn under way, but not the run.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, say, talk};
use clap::Args;
use pinfold_api::endpoint;
use serde_json::json;

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct Interrupt {
    /// Its name, or a unique beginning of its id
    session: String,
}

impl DaemonVerb for Interrupt {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let object = daemon.client()?.ask(&endpoint::Interrupt::call(&self.session))?;
        if daemon.global.json {
            say(&json!(object));
        } else if !daemon.global.quiet {
            talk(&format!("the turn of {} was asked to end", object.name));
        }
        Ok(())
    }
}
