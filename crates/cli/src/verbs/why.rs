//! `why`: says in a sentence what a session does, why, and what comes next.

use crate::daemon::Daemon;
use crate::definition;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Paper, print, say, wrapped};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::object::Session;
use pinfold_core::visible::visible;
use serde_json::json;

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Its name, or a unique beginning of its id
    session: String,
}

impl DaemonVerb for Why {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let object = daemon.client()?.ask(&endpoint::Show::call(&self.session))?;
        if daemon.global.json {
            let Session { name, state, why, next, holder, last_exit, .. } = object;
            say(&json!({
                "name": name,
                "state": state,
                "why": why,
                "next": next,
                "holder": holder,
                "last_exit": last_exit,
            }));
        } else {
            let width = Paper::stdout().width().unwrap_or(usize::MAX);
            let sentence = format!("{} is {}.", object.name, object.why);
            wrapped(&visible(&sentence), width).iter().for_each(|line| print(&format!("{line}\n")));
            if !daemon.global.quiet {
                let variable = |name: &str| std::env::var(name).ok();
                definition::warn_of_shared_server(Some(&object.agent), variable);
            }
        }
        Ok(())
    }
}
