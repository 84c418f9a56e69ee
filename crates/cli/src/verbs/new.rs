//! `new`: creates a session, and prints its id.

use crate::daemon::Daemon;
use crate::definition::{self, Definition};
use crate::doing::Asks;
use crate::output::{Failure, say, talk};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::word::State;
use serde_json::json;

/// What it is.
#[derive(Debug, Args)]
pub(crate) struct New {
    #[command(flatten)]
    definition: Definition,
}

impl Asks for New {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let mut request = definition::request(&self.definition)?;
        definition::take_from_here(&mut request, &daemon.global);
        let client = daemon.client()?;
        let session = client.ask(&endpoint::New::call(&request))?;
        if daemon.global.json {
            say(&json!(session));
        } else {
            say(&session.id);
        }
        if !daemon.global.quiet && ![State::Running, State::Idle].contains(&session.state) {
            talk(&format!("{} is {}", session.name, session.why));
        }
        if !daemon.global.quiet {
            let given = |name: &str| request.env.as_ref()?.get(name).cloned();
            let variable = |name: &str| given(name).or_else(|| std::env::var(name).ok());
            definition::warn_of_shared_server(request.agent.as_deref(), variable);
        }
        definition::warn_of_ceiling(&client, request.memory.as_deref(), &daemon.global)
    }
}
