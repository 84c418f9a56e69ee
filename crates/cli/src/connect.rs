//! Finds the daemon of a home, and starts it where that is wanted.

use crate::args::Global;
use crate::error::{Failure, Kind};
use crate::places;
use pinfold_api::{Client, ClientError};
use pinfold_daemon::{Home, Options, StartError};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Another daemon that has the home answers within this, or something is wrong with it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
/// A daemon that is starting is asked again after this.
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// The daemon's log is moved aside at its start when it has grown to this.
const LARGEST_LOG: u64 = 8 << 20;

/// Where everything of a home lives.
pub(crate) fn home(global: &Global) -> Result<Home, Failure> {
    Ok(Home {
        state: places::home(global)?,
        runtime: places::runtime(global)?,
        user_locks: places::user_locks()?,
    })
}

/// A client of the daemon; it is started if it does not run, unless that was forbidden.
pub(crate) fn client(global: &Global) -> Result<Client, Failure> {
    let home = home(global)?;
    let client = Client::new(home.socket());
    match client.get::<Value>("/v1/status") {
        Err(ClientError::Down { .. }) if !global.no_start => start(&home, global).map(|()| client),
        Err(ClientError::Down { .. }) => Err(down(&home)),
        Ok(_) | Err(_) => Ok(client),
    }
}

/// A client of a daemon that must run already.
pub(crate) fn running(global: &Global) -> Result<Client, Failure> {
    client(&Global { no_start: true, ..global.clone() })
}

pub(crate) fn down(home: &Home) -> Failure {
    let message = format!("no daemon of {} answers at {}", home.state.display(), home.socket().display());
    Failure::new(Kind::Unavailable, message)
        .hint("`pinfold up` starts it; --home or PINFOLD_HOME names another home")
}

/// Starts the daemon and returns when it answers. When several try, one of them is it and all return.
pub(crate) fn start(home: &Home, global: &Global) -> Result<(), Failure> {
    let client = Client::new(home.socket());
    let program = std::env::current_exe().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let log = open_log(home)?;
    let mut command = Command::new(&program);
    if let Some(home) = global.home.as_ref() {
        command.arg("--home").arg(std::path::absolute(home).unwrap_or_else(|_| home.clone()));
    }
    command.args(["up", "--foreground", "--detached"]).current_dir("/");
    // Whoever starts it may itself be part of a run; the daemon is not.
    for variable in ["PINFOLD_RUN", "PINFOLD_SESSION", "PINFOLD_FENCE", "PINFOLD_SOCKET", "NOTIFY_SOCKET"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        _ = BufReader::new(stdout).read_line(&mut said);
    }
    if said.trim() == "up" {
        return Ok(());
    }
    let status = child.wait().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    match status.code() {
        // Another one was faster.
        Some(75) => wait_for_answer(&client, home),
        Some(code) => Err(did_not_start(home, code)),
        None => Err(did_not_start(home, 1)),
    }
}

fn wait_for_answer(client: &Client, home: &Home) -> Result<(), Failure> {
    let until = Instant::now() + ANSWERS_WITHIN;
    loop {
        match client.get::<Value>("/v1/status") {
            Err(ClientError::Down { .. } | ClientError::Broken(_)) if Instant::now() < until => {
                std::thread::sleep(ASK_AGAIN);
            }
            Err(ClientError::Down { .. }) => return Err(down(home)),
            Ok(_) | Err(_) => return Ok(()),
        }
    }
}

/// The last line of its log says why.
fn did_not_start(home: &Home, code: i32) -> Failure {
    let text = std::fs::read_to_string(home.daemon_log()).unwrap_or_default();
    let why = text.lines().rev().find_map(|line| line.split_once("error: ")).map(|(_, why)| why.to_owned());
    let kind = Kind::ALL.into_iter().find(|kind| i32::from(kind.exit_code()) == code).unwrap_or(Kind::Failed);
    let why = why.unwrap_or_else(|| format!("it ended with {code}"));
    Failure::new(kind, format!("the daemon did not start: {why}"))
        .hint(format!("its log is {}", home.daemon_log().display()))
}

fn open_log(home: &Home) -> Result<std::fs::File, Failure> {
    let path = home.daemon_log();
    if std::fs::metadata(&path).is_ok_and(|facts| facts.len() > LARGEST_LOG) {
        _ = std::fs::rename(&path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| Failure::new(Kind::Failed, format!("{} cannot be written: {error}", path.display())))
}

/// Runs the daemon in this process.
pub(crate) fn run_daemon(global: &Global, detached: bool) -> Result<(), Failure> {
    let home = home(global)?;
    if detached {
        // Fails only for a process that leads a group, which a spawned one does not.
        _ = rustix::process::setsid();
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let shim = shim_program().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let up = move || {
        if detached {
            crate::verbs::say(&"up");
            close_stdout();
        }
    };
    pinfold_daemon::run(Options { home, shim }, up).map_err(|error| failure(&error))
}

/// Whoever waits for our word must not wait for our end.
fn close_stdout() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// The small shim beside this program, or this program as shim.
fn shim_program() -> std::io::Result<(PathBuf, Vec<OsString>)> {
    let own = std::env::current_exe()?;
    let small = own.parent().unwrap_or(Path::new("/")).join("pinfold-shim");
    if small.is_file() { Ok((small, Vec::new())) } else { Ok((own, vec![crate::SHIM.into()])) }
}

fn failure(error: &StartError) -> Failure {
    match error {
        StartError::Running => Failure::from_error(Kind::Busy, error).hint("`pinfold status` tells about it"),
        StartError::Store(
            pinfold_store::OpenError::Damaged { .. } | pinfold_store::OpenError::TooNew { .. },
        ) => Failure::from_error(Kind::Damaged, error)
            .hint("nothing was changed; move it aside, or use the pinfold that wrote it"),
        StartError::Place { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Failure::from_error(Kind::NotPermitted, error)
        }
        StartError::Locks(_) => Failure::from_error(Kind::BadConfig, error),
        StartError::Place { .. }
        | StartError::Store(_)
        | StartError::Read(_)
        | StartError::Commit(_)
        | StartError::System(_) => Failure::from_error(Kind::Failed, error),
    }
}
