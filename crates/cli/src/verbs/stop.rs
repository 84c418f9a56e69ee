//! `stop`: stops sessions with everything they started.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::output::Failure;
use crate::several;
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::request;

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Which
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Instead of the grace before SIGKILL
    #[arg(long, value_name = "DUR")]
    timeout: Option<String>,
}

impl Asks for Stop {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let stop = request::Stop { timeout: self.timeout.clone() };
        several::each_session(&self.sessions, daemon, |client, session| {
            client.ask(&endpoint::Stop::call(session, &stop))
        })
    }
}
