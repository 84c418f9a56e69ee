//! `rename`: gives a session another name.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, say, talk};
use clap::Args;
use pinfold_api::{endpoint, request};
use serde_json::json;

/// Which session, and its name.
#[derive(Debug, Args)]
pub(crate) struct Rename {
    /// Its name, or a unique beginning of its id
    session: String,
    /// The name that it has from now on
    name: String,
}

impl DaemonVerb for Rename {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let rename = request::Rename { name: self.name.clone() };
        let session = daemon.client()?.ask(&endpoint::Rename::call(&self.session, &rename))?;
        if daemon.global.json {
            say(&json!(session));
        } else if !daemon.global.quiet {
            talk(&format!("{} is called {} now", self.session, session.name));
        }
        Ok(())
    }
}
