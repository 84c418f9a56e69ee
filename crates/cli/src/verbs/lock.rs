//! `pinfold lock`: runs a command under a lock.

use crate::args::{Global, Lock};
use crate::audit;
use crate::error::Failure;
use crate::places;
use crate::under::{self, Giving};
use pinfold_lock::{
    AcquireError, Folder, Guard, LOCK_RUNS_VARIABLE, RUN_VARIABLE, Request, Resource, Run, Survivors, process,
};
use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

pub(crate) fn run(lock: &Lock, global: &Global) -> Result<ExitCode, Failure> {
    let resource = Resource::parse(&lock.resource)?;
    let folder = places::folder_for(&resource, global)?;
    audit::of_grants(&folder, global);
    let own = process::own().map_err(AcquireError::from)?;
    let outer = outer_runs();
    let giving = if lock.close { Giving::Kept } else { Giving::Given };
    let run = match giving {
        Giving::Given => Some(Run::fresh(&own)),
        Giving::Kept => None,
    };
    let request = Request {
        reason: lock.reason.clone(),
        command: words(&lock.command),
        run: run.clone(),
        inside: outer.clone(),
        survivors: if run.is_some() { Survivors::Wait } else { Survivors::Ignore },
        ..Request::default()
    };
    let guard = acquire(&folder, &resource, &request, lock.wait)?;
    let mut command = Command::new(&lock.command[0]);
    command.args(&lock.command[1..]);
    if let Some(run) = run {
        mark(&mut command, &outer, &run, &guard);
    }
    under::run(command, guard, giving).map(ExitCode::from)
}

fn acquire(
    folder: &Folder,
    resource: &Resource,
    request: &Request,
    wait: Option<Duration>,
) -> Result<Guard, AcquireError> {
    match wait {
        None => folder.try_acquire(resource, request),
        // A time too far to be reached is no deadline.
        Some(wait) => match Instant::now().checked_add(wait) {
            Some(deadline) => folder.acquire_until(resource, request, deadline),
            None => folder.acquire(resource, request),
        },
    }
}

/// Makes the command and its children recognisable, without hiding that they belong to an outer run.
fn mark(command: &mut Command, outer: &[Run], run: &Run, guard: &Guard) {
    let mut runs: Vec<&str> = outer.iter().map(Run::as_str).collect();
    runs.push(run.as_str());
    command.env(LOCK_RUNS_VARIABLE, runs.join(":"));
    if std::env::var_os(RUN_VARIABLE).is_none() {
        command.env(RUN_VARIABLE, run.as_str());
        command.env("PINFOLD_FENCE", guard.fence().to_string());
    }
}

/// The runs inside which this process was started.
fn outer_runs() -> Vec<Run> {
    let listed = std::env::var(LOCK_RUNS_VARIABLE).unwrap_or_default();
    let mut runs: Vec<Run> = listed.split(':').filter_map(|name| Run::new(name).ok()).collect();
    if let Some(run) = std::env::var(RUN_VARIABLE).ok().and_then(|name| Run::new(name).ok())
        && !runs.contains(&run)
    {
        runs.push(run);
    }
    runs
}

fn words(command: &[OsString]) -> String {
    command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
