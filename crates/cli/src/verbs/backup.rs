//! `backup`: copies the database to a new file, while it is in use.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Kind, say, talk};
use clap::{Args, ValueHint};
use pinfold_api::{endpoint, request};
use pinfold_core::words;
use serde_json::json;
use std::path::PathBuf;

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to make
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

impl DaemonVerb for Backup {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let path = std::path::absolute(&self.file)
            .map_err(|error| Failure::new(Kind::Failed, format!("{}: {error}", self.file.display())))?;
        let made = daemon.client()?.ask(&endpoint::Backup::call(&request::Backup { path }))?;
        if daemon.global.json {
            say(&json!(made));
        } else if !daemon.global.quiet {
            talk(&format!("the database was copied to {} ({})", made.path, words::size(made.bytes)));
        }
        Ok(())
    }
}
