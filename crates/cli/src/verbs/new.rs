//! `new` and `set`: what a session is.

use super::{say, talk};
use crate::args::Global;
use crate::connect;
use crate::error::{Failure, Kind};
use clap::Args;
use pinfold_api::client::Client;
use pinfold_api::object::{Session, Status};
use pinfold_api::request::NewSession;
use pinfold_api::units;
use pinfold_core::words;
use serde_json::json;
use std::collections::BTreeMap;

/// The options of `new` and `set`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Defining {
    /// The name; for `set` also a unique beginning of the id
    pub(crate) name: String,
    /// The kind of agent; `command` runs any program
    #[arg(long, value_name = "A")]
    agent: Option<String>,
    /// The agent's own session to continue
    #[arg(long, value_name = "ID")]
    vendor_session: Option<String>,
    /// Where it runs; the directory is locked for it
    #[arg(long, value_name = "D")]
    dir: Option<String>,
    /// When it runs: on-demand, always or once
    #[arg(long, value_name = "M")]
    mode: Option<String>,
    /// Memory at which it is drained: 512M, 2G
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// How long a run without need is kept: 5m
    #[arg(long, value_name = "DUR")]
    idle: Option<String>,
    /// Time between the stop signal and SIGKILL: 10s
    #[arg(long, value_name = "DUR")]
    stop_grace: Option<String>,
    /// Give it a terminal
    #[arg(long)]
    pty: bool,
    /// How messages are written: line or json
    #[arg(long, value_name = "HOW")]
    input: Option<String>,
    /// When a turn is over: line or done
    #[arg(long, value_name = "WHEN")]
    turns: Option<String>,
    /// The session it belongs to
    #[arg(long, value_name = "S")]
    parent: Option<String>,
    /// A tag; may be given several times
    #[arg(long, value_name = "T")]
    tag: Vec<String>,
    /// A variable to set, or to take from here; may be given several times
    #[arg(long, value_name = "K[=V]")]
    env: Vec<String>,
    /// Do not lock the directory
    #[arg(long)]
    no_dir_lock: bool,
    /// Run beside a foreign agent in the directory
    #[arg(long)]
    beside: bool,
    /// Create it although its program or directory is missing
    #[arg(long)]
    force: bool,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Harmless variables that a session keeps from whoever made it. Nothing of git's, no keys, no tokens.
const HARMLESS: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "TMPDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
];
const HARMLESS_BEGINNINGS: [&str; 4] = ["LC_", "XDG_CONFIG", "XDG_DATA", "XDG_CACHE"];

pub(crate) fn new(defining: &Defining, global: &Global) -> Result<(), Failure> {
    let request = request(defining)?;
    let client = connect::client(global)?;
    let session: Session = client.post("/v1/sessions", &request)?;
    if global.json {
        say(&json!(session));
    } else {
        say(&session.id);
    }
    if !global.quiet && session.state != "running" && session.state != "idle" {
        talk(&format!("{} is {}", session.name, session.why));
    }
    warn_of_ceiling(&client, request.memory.as_deref(), global)
}

/// A limit that the kernel will not let the session reach is no limit: that is said, not refused.
fn warn_of_ceiling(client: &Client, memory: Option<&str>, global: &Global) -> Result<(), Failure> {
    let Some(limit) = memory.and_then(|memory| units::size(memory).ok()).filter(|_| !global.quiet) else {
        return Ok(());
    };
    let status: Status = client.get("/v1/status")?;
    let ceiling = status.capabilities.get("memory_ceiling").and_then(|told| told["bytes"].as_u64());
    if let Some(warning) = ceiling.and_then(|ceiling| too_high(limit, ceiling)) {
        warning.lines().for_each(|line| talk(&line));
    }
    Ok(())
}

/// What is said of a limit above four fifths of what the kernel allows everything around the daemon.
fn too_high(limit: u64, ceiling: u64) -> Option<String> {
    let most = ceiling / 5 * 4;
    (limit > most).then(|| {
        format!(
            "warning: the kernel allows {} to the daemon and all agents together, so it may kill before --memory drains\n\
             hint: a limit below {} is met first",
            words::size(ceiling),
            words::size(most)
        )
    })
}

pub(crate) fn set(defining: &Defining, global: &Global) -> Result<(), Failure> {
    let request = NewSession { caller_dir: None, caller_env: None, caller_umask: None, ..request(defining)? };
    let path = super::sessions::path(&defining.name, "set");
    let client = connect::client(global)?;
    let session: Session = client.post(&path, &request)?;
    if global.json {
        say(&json!(session));
    }
    warn_of_ceiling(&client, request.memory.as_deref(), global)
}

/// The request for a session, with what it takes from the caller.
pub(crate) fn request(defining: &Defining) -> Result<NewSession, Failure> {
    let own = defining.clone();
    Ok(NewSession {
        env: if own.env.is_empty() { None } else { Some(variables(&own.env)?) },
        name: own.name,
        agent: own.agent,
        vendor_session: own.vendor_session,
        dir: own.dir.map(|dir| absolute(&dir)).transpose()?,
        mode: own.mode,
        memory: own.memory,
        idle: own.idle,
        stop_grace: own.stop_grace,
        pty: own.pty.then_some(true),
        input: own.input,
        turns: own.turns,
        parent: own.parent,
        tags: (!own.tag.is_empty()).then_some(own.tag),
        dir_lock: own.no_dir_lock.then_some(false),
        beside: own.beside.then_some(true),
        force: own.force.then_some(true),
        command: (!own.command.is_empty()).then_some(own.command),
        caller_dir: Some(absolute(".")?),
        caller_env: Some(harmless()),
        caller_umask: Some(umask()),
    })
}

/// The umask can be read only by setting it; this program has one thread.
fn umask() -> u32 {
    let own = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    rustix::process::umask(own);
    own.as_raw_mode()
}

fn absolute(path: &str) -> Result<String, Failure> {
    let path = std::path::absolute(path).map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    Ok(path.to_string_lossy().into_owned())
}

/// `K=V` sets a variable, `K` takes it from here.
fn variables(words: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    words
        .iter()
        .map(|word| match word.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            Some(_) => Err(Failure::new(Kind::Usage, format!("`{word}` has no variable name"))),
            None => match std::env::var(word) {
                Ok(value) => Ok((word.clone(), value)),
                Err(_) => Err(Failure::new(Kind::Usage, format!("the variable `{word}` is not set here"))
                    .hint(format!("--env {word}=VALUE sets it"))),
            },
        })
        .collect()
}

/// Whether a variable says nothing that only some should know.
pub(crate) fn is_harmless(key: &str) -> bool {
    HARMLESS.contains(&key) || HARMLESS_BEGINNINGS.iter().any(|begin| key.starts_with(begin))
}

fn harmless() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, _)| is_harmless(key))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_on_the_list_of_harmless_variables() {
        for name in ["GIT_DIR", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD"] {
            assert!(!HARMLESS.contains(&name));
            assert!(!HARMLESS_BEGINNINGS.iter().any(|begin| name.starts_with(begin)));
        }
    }

    #[test]
    fn a_limit_above_four_fifths_of_the_ceiling_is_warned_of() {
        assert_eq!(too_high(800, 1000), None);
        let warning = too_high(820 << 20, 1000 << 20).unwrap();
        assert!(warning.contains("1000 MiB") && warning.contains("800 MiB"), "{warning}");
    }

    #[test]
    fn a_variable_is_set_taken_or_an_error() {
        let set = variables(&["A=1=2".into(), "B=".into()]).unwrap();
        assert_eq!((set["A"].as_str(), set["B"].as_str()), ("1=2", ""));
        assert!(variables(&["=x".into()]).is_err());
        assert!(variables(&["SURELY_NOT_SET_ANYWHERE".into()]).is_err());
    }
}
