//! `new`: creates a session, and prints its id.

use crate::commands;
use crate::daemon::Daemon;
use crate::definition::{self, DefinitionOptions};
use crate::doing::DaemonVerb;
use crate::output::{Failure, say, talk};
use crate::worktree::{self, MadeWorktree};
use clap::Args;
use pinfold_api::request::NewSession;
use pinfold_api::word::State;
use serde_json::json;
use std::path::Path;

/// What it is.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// Its name [default: made of the directory, and of the agent where that is taken]
    name: Option<String>,
    #[command(flatten)]
    definition: DefinitionOptions,
    /// Make a git worktree of this branch beside the repository, and run there; the branch is made if there is none
    #[arg(long, value_name = "BRANCH")]
    worktree: Option<String>,
}

impl DaemonVerb for New {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let name = self.name.as_deref().unwrap_or_default();
        let mut request = definition::request(name, &self.definition, &daemon.global)?;
        definition::take_from_here(&mut request, &daemon.global);
        let client = daemon.client()?;
        let worktree = self.worktree.as_ref().map(|branch| in_worktree(&mut request, branch)).transpose()?;
        let session = definition::create(&client, &mut request, self.name.is_some()).map_err(|error| {
            worktree.iter().for_each(MadeWorktree::undo);
            commands::better(error, &request)
        })?;
        if daemon.global.json {
            say(&json!(session));
        } else if self.name.is_some() {
            say(&session.id);
        } else {
            say(&format!("{} {}", session.id, session.name));
        }
        if let Some(warning) =
            worktree.as_ref().and_then(MadeWorktree::warning).filter(|_| !daemon.global.quiet)
        {
            warning.lines().for_each(|line| talk(&line));
        }
        definition::say_missed(&request, &daemon.global);
        if !daemon.global.quiet && ![State::Running, State::Idle].contains(&session.state) {
            talk(&format!("{} is {}", session.name, session.why));
        }
        if !daemon.global.quiet {
            let given = |name: &str| request.env.as_ref()?.get(name).cloned();
            let variable = |name: &str| given(name).or_else(|| std::env::var(name).ok());
            definition::warn_of_shared_server(request.agent.as_deref(), variable);
            definition::warn_of_bare_prompt(request.agent.as_deref(), &daemon.global);
        }
        definition::warn_of_ceiling(&client, request.memory.as_deref(), &daemon.global)
    }
}

/// Makes a worktree in the repository around the given directory, or around the caller's.
fn in_worktree(request: &mut NewSession, branch: &str) -> Result<MadeWorktree, Failure> {
    let dir = request.dir.as_deref().or(request.caller_dir.as_deref()).unwrap_or(".");
    let made = worktree::make(Path::new(dir), branch)?;
    request.dir = Some(made.record.path.clone());
    request.worktree = Some(made.record.clone());
    Ok(made)
}
