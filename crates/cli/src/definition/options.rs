//! The options that define a session.

use super::env;
use crate::global::Global;
use crate::output::{Failure, Kind};
use crate::umask;
use clap::{Args, ValueHint};
use pinfold_api::request::NewSession;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The options of `new` and `set`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DefinitionOptions {
    /// The kind of agent; `command` runs any program [default: command]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The agent's own session to continue
    #[arg(long, value_name = "ID")]
    vendor_session: Option<String>,
    /// Where it runs; the directory is locked for it [default: this directory, not locked for `command`]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<String>,
    /// When it runs: on-demand, always or once [default: always for `command`, on-demand for chat agents]
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Restart it when it uses more than this: 512M, 2G [default: no limit]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Stop it after this long without messages or clients [default: 5m]
    #[arg(long, value_name = "DUR")]
    idle: Option<String>,
    /// Time between the stop signal and SIGKILL [default: 10s]
    #[arg(long, value_name = "DUR")]
    stop_grace: Option<String>,
    /// Ask a person once it has spent this: 5USD, 0.50USD; a turn under way is finished [default: no limit]
    #[arg(long, value_name = "AMOUNT")]
    budget: Option<String>,
    /// Ask a person once its turns have taken this long in all; a turn under way is finished [default: no limit]
    #[arg(long, value_name = "DUR")]
    turn_time: Option<String>,
    /// Give it a terminal
    #[arg(long)]
    pty: bool,
    /// How messages are written to it: line or json [default: line]
    #[arg(long, value_name = "HOW")]
    input: Option<String>,
    /// When a turn is over: once the line is read (line), or at PINFOLD_DONE (done) [default: line]
    #[arg(long, value_name = "WHEN")]
    turns: Option<String>,
    /// Treat an exit whose last lines contain TEXT as contended (retry later), not as a crash
    #[arg(long, value_name = "TEXT")]
    contended_if: Option<String>,
    /// The session it belongs to [default: the session that calls]
    #[arg(long, value_name = "SESSION")]
    parent: Option<String>,
    /// A tag; may be given several times
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// A variable to take from here, or to set; may be given several times. K=V can be seen in the list of processes
    #[arg(long, value_name = "K[=V]")]
    env: Vec<String>,
    /// A file of variables, one K=V per line, without any quoting; may be given several times
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    env_file: Vec<PathBuf>,
    /// Do not lock the directory
    #[arg(long)]
    no_dir_lock: bool,
    /// Run beside a foreign agent in the directory; refused, because this version cannot do it
    #[arg(long, hide = true)]
    beside: bool,
    /// Create it although its program or directory is missing
    #[arg(long)]
    force: bool,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The request for a session, including what it takes from the caller.
pub(crate) fn request(
    name: &str,
    definition: &DefinitionOptions,
    global: &Global,
) -> Result<NewSession, Failure> {
    let own = definition.clone();
    let dir = own.dir.map(|dir| absolute(&dir)).transpose()?;
    Ok(NewSession {
        env: env::given(&own.env_file, &own.env, global)?,
        name: name.to_owned(),
        agent: own.agent,
        vendor_session: own.vendor_session,
        mode: own.mode,
        memory: own.memory,
        idle: own.idle,
        stop_grace: own.stop_grace,
        budget: own.budget,
        turn_time: own.turn_time,
        pty: own.pty.then_some(true),
        input: own.input,
        turns: own.turns,
        contended_if: own.contended_if,
        parent: own.parent,
        tags: (!own.tag.is_empty()).then_some(own.tag),
        dir_lock: own.no_dir_lock.then_some(false),
        beside: own.beside.then_some(true),
        force: own.force.then_some(true),
        command: (!own.command.is_empty()).then_some(own.command),
        ..from_here(NewSession { dir, ..NewSession::default() })?
    })
}

/// Adds what every session takes from the caller. A session with a directory of its own needs no other.
pub(crate) fn from_here(request: NewSession) -> Result<NewSession, Failure> {
    let caller_dir = match absolute(".") {
        Err(_) if request.dir.is_some() => None,
        here => Some(here?),
    };
    let (caller_env, caller_umask) = (Some(harmless()), Some(umask::own().as_raw_mode()));
    Ok(NewSession { caller_dir, caller_env, caller_umask, ..request })
}

fn absolute(path: &str) -> Result<String, Failure> {
    let path = std::path::absolute(path).map_err(|error| no_directory_here(&error))?;
    Ok(path.to_string_lossy().into_owned())
}

/// The error for a caller without a working directory, which has been deleted as a rule.
fn no_directory_here(error: &std::io::Error) -> Failure {
    let here = std::fs::read_link("/proc/self/cwd").unwrap_or_default();
    let here = here.to_string_lossy();
    let here = here.strip_suffix(" (deleted)").unwrap_or(&here);
    Failure::new(Kind::BadConfig, format!("the working directory {here} cannot be used: {error}"))
        .hint("it was probably deleted: `cd` to another directory, or use `--dir` with an absolute path")
}

/// The caller's harmless variables, which a session keeps.
fn harmless() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| pinfold_daemon::is_harmless(key))
        .collect()
}
