//! `wait`: waits until a session is in a state.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, say, talk};
use crate::told_exit::told;
use clap::Args;
use pinfold_api::object::Session;
use pinfold_api::word::State;
use pinfold_api::{endpoint, query};
use serde_json::json;

/// Which session, and what for.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Its name, or a unique beginning of its id
    session: String,
    /// The states, separated by commas
    #[arg(long = "for", value_name = "STATE[,STATE]")]
    states: String,
    /// Give up after DUR (exit 124) [default: never]
    #[arg(long, value_name = "DUR")]
    timeout: Option<String>,
}

impl DaemonVerb for Wait {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let what = query::Wait { r#for: self.states.clone(), timeout: self.timeout.clone() };
        let object = daemon.client()?.ask(&endpoint::Wait::call(&self.session, &what))?;
        if let Some(how) = how_it_came(&object).filter(|_| !daemon.global.quiet) {
            talk(&how);
        }
        if daemon.global.json {
            say(&json!(object));
        }
        Ok(())
    }
}

/// What brought a session into its state, if that was the end of a run or a failed start.
fn how_it_came(session: &Session) -> Option<String> {
    match (&session.state, &session.last_exit) {
        (State::Failed | State::Backoff, _) => Some(format!("{} is {}", session.name, session.why)),
        (State::Stopped | State::Idle, Some(exit)) => Some(format!("{} {}", session.name, told(exit))),
        _ => None,
    }
}
