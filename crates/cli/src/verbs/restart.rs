//! `restart`: ends the run of sessions and starts another.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::Failure;
use crate::several;
use clap::Args;
use pinfold_api::endpoint;

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// One or more session names
    #[arg(required = true)]
    sessions: Vec<String>,
}

impl DaemonVerb for Restart {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        several::each_session(&self.sessions, daemon, |client, session| {
            client.ask(&endpoint::Restart::call(session))
        })
    }
}
