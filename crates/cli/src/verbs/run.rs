//! `run`: supervises a program in the foreground, without a daemon.

use crate::definition::{self, DefinitionOptions};
use crate::doing::ProgramVerb;
use crate::global::Global;
use crate::output::{Failure, Kind, talk};
use crate::{commands, daemon, home};
use clap::Args;
use pinfold_api::request::NewSession;
use pinfold_daemon::{ForegroundOptions, RunError, run_alone};
use std::process::ExitCode;

/// What is run.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Its name, by which it is locked
    name: String,
    #[command(flatten)]
    definition: DefinitionOptions,
}

impl ProgramVerb for Run {
    fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let quiet = global.quiet;
        let request = definition::request(&self.name, &self.definition, global)?;
        let idle = without_effect(&request);
        if !idle.is_empty() && !quiet {
            talk(&format!("note: {} means nothing to `run`, which keeps no session", idle.join(", ")));
        }
        let options = ForegroundOptions {
            home: home::home(global)?,
            shim: daemon::shim_program().map_err(|error| Failure::from_error(Kind::Failed, &error))?,
            request,
            say: Box::new(move |sentence| {
                if !quiet {
                    talk(&sentence);
                }
            }),
        };
        let asked = options.request.clone();
        run_alone(options).map(ExitCode::from).map_err(|error| match error {
            RunError::Refused(body) => commands::hinted(body, &asked).into(),
            RunError::Start(error) => daemon::start_failure(&error),
        })
    }
}

/// Options of `new` for what only a daemon has: an inbox, a list, a record.
fn without_effect(request: &NewSession) -> Vec<&'static str> {
    let given = [
        ("--idle", request.idle.is_some()),
        ("--budget", request.budget.is_some()),
        ("--turn-time", request.turn_time.is_some()),
        ("--input", request.input.is_some()),
        ("--turns", request.turns.is_some()),
        ("--parent", request.parent.is_some()),
        ("--tag", request.tags.is_some()),
        ("--force", request.force.is_some()),
    ];
    given.into_iter().filter_map(|(option, given)| given.then_some(option)).collect()
}
