//! `restore`: restores archived sessions.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, say, talk};
use crate::several;
use clap::Args;
use pinfold_api::endpoint;
use serde_json::json;

/// What comes back.
#[derive(Debug, Clone, Args)]
pub(crate) struct Restore {
    /// One or more session names, or ids
    #[arg(required_unless_present = "all")]
    sessions: Vec<String>,
    /// Every archived session whose name is free
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
}

impl DaemonVerb for Restore {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        if !self.all {
            return several::each_session(&self.sessions, daemon, |client, session| {
                client.ask(&endpoint::Restore::call(session))
            });
        }
        all(daemon)
    }
}

fn all(daemon: &Daemon) -> Result<(), Failure> {
    let restored = daemon.client()?.ask(&endpoint::RestoreAll::call())?;
    if daemon.global.json {
        say(&json!(restored));
    } else if !daemon.global.quiet {
        restored.iter().for_each(|session| talk(&format!("{} is {}", session.name, session.why)));
        if restored.is_empty() {
            talk(&"nothing to do: no session is archived under a free name");
        }
    }
    Ok(())
}
