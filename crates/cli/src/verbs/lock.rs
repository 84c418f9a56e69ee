//! `lock`: runs a command while holding a lock. Needs no daemon.

use crate::doing::ProgramVerb;
use crate::global::Global;
use crate::locked_command::{self, Giving};
use crate::output::Failure;
use crate::{audit, home};
use clap::Args;
use pinfold_api::units;
use pinfold_lock::{
    AcquireError, Folder, Guard, LOCK_RUNS_VARIABLE, RUN_VARIABLE, Request, Resource, RunName, Survivors,
    process,
};
use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Which lock, and for what.
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// A directory, session:NAME or key:ANY
    resource: OsString,
    /// Wait up to DUR for the lock: 250ms, 10s, 5m, 2h, 7d [default: do not wait]
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    wait: Option<Duration>,
    /// Say what the lock is held for
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Do not give the lock to the command: it ends with `pinfold lock`
    #[arg(long)]
    close: bool,
    /// The command to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl ProgramVerb for Lock {
    fn run(&self, global: &Global) -> Result<ExitCode, Failure> {
        let resource = Resource::parse(&self.resource)?;
        let folder = home::folder_for(&resource, global)?;
        audit::of_grants(&folder, global);
        let own = process::own().map_err(AcquireError::from)?;
        let outer = outer_runs();
        let giving = if self.close { Giving::Kept } else { Giving::Given };
        let run = match giving {
            Giving::Given => Some(RunName::fresh(&own)),
            Giving::Kept => None,
        };
        let request = Request {
            reason: self.reason.clone(),
            command: words(&self.command),
            run: run.clone(),
            inside: outer.clone(),
            survivors: if run.is_some() { Survivors::Wait } else { Survivors::Ignore },
            ..Request::default()
        };
        let guard = acquire(&folder, &resource, &request, self.wait)?;
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        if let Some(run) = run {
            mark(&mut command, &outer, &run, &guard);
        }
        locked_command::run(command, guard, giving).map(ExitCode::from)
    }
}

fn acquire(
    folder: &Folder,
    resource: &Resource,
    request: &Request,
    wait: Option<Duration>,
) -> Result<Guard, AcquireError> {
    match wait {
        None => folder.try_acquire(resource, request),
        // A deadline too far in the future to represent is none.
        Some(wait) => match Instant::now().checked_add(wait) {
            Some(deadline) => folder.acquire_until(resource, request, deadline),
            None => folder.acquire(resource, request),
        },
    }
}

/// Marks the command and its children as a run, without hiding the outer runs they belong to.
fn mark(command: &mut Command, outer: &[RunName], run: &RunName, guard: &Guard) {
    let mut runs: Vec<&str> = outer.iter().map(RunName::as_str).collect();
    runs.push(run.as_str());
    command.env(LOCK_RUNS_VARIABLE, runs.join(":"));
    if std::env::var_os(RUN_VARIABLE).is_none() {
        command.env(RUN_VARIABLE, run.as_str());
        command.env("PINFOLD_FENCE", guard.fence().to_string());
    }
}

/// The runs this process is part of.
fn outer_runs() -> Vec<RunName> {
    let listed = std::env::var(LOCK_RUNS_VARIABLE).unwrap_or_default();
    let mut runs: Vec<RunName> = listed.split(':').filter_map(|name| RunName::new(name).ok()).collect();
    if let Some(run) = std::env::var(RUN_VARIABLE).ok().and_then(|name| RunName::new(name).ok())
        && !runs.contains(&run)
    {
        runs.push(run);
    }
    runs
}

fn words(command: &[OsString]) -> String {
    command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
