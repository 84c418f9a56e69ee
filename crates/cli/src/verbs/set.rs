//! `set`: changes a session, from its next run on.

use crate::daemon::Daemon;
use crate::definition::{self, Definition};
use crate::doing::Asks;
use crate::output::{Failure, say};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::request::NewSession;
use serde_json::json;

/// What changes.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name, or a unique beginning of its id
    session: String,
    #[command(flatten)]
    definition: Definition,
}

impl Asks for Set {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let request = definition::request(&self.session, &self.definition, &daemon.global)?;
        let request = NewSession { caller_dir: None, caller_env: None, caller_umask: None, ..request };
        let client = daemon.client()?;
        let session = client.ask(&endpoint::Set::call(&self.session, &request))?;
        if daemon.global.json {
            say(&json!(session));
        }
        definition::warn_of_ceiling(&client, request.memory.as_deref(), &daemon.global)
    }
}
