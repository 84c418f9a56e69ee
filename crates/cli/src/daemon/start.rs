//! Starts the daemon of a home as a process that inherits nothing from us.

use super::find::{FoundDaemon, at, down, find, refuse_squatter};
use super::system;

use crate::global::Global;
use crate::output::{Failure, Kind};
use crate::{home, inside};
use pinfold_api::error::ErrorEnvelope;
use pinfold_api::{Client, ErrorBody};
use pinfold_daemon::Home;
use pinfold_lock::LOCK_RUNS_VARIABLE;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long to keep trying while daemons come and go before they answer.
const GIVE_UP: Duration = Duration::from_secs(20);

/// Refuses to start a daemon inside a run: it would be part of the agent's tree and end with it.
pub(super) fn refuse_inside(home: &Home) -> Result<(), Failure> {
    if !inside::is_inside() {
        return Ok(());
    }
    Err(down(home).hint("inside a run no daemon is started; `pinfold up` outside of it does"))
}

/// Starts the daemon and returns when it answers. If several processes try, one becomes the daemon and all of
/// them return.
pub(super) fn start(home: &Home, global: &Global) -> Result<Client, Failure> {
    let until = Instant::now() + GIVE_UP;
    while Instant::now() < until {
        if let Started::Up = start_one(home, global)? {
            return Ok(at(home));
        }
        if let FoundDaemon::Up(client) = find(home)? {
            return Ok(client);
        }
        refuse_squatter(home)?;
    }
    Err(down(home))
}

enum Started {
    Up,
    /// Another daemon was faster.
    Another,
}

fn start_one(home: &Home, global: &Global) -> Result<Started, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| Failure::from_error(Kind::Failed, error);
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut command = Command::new(&program);
    if global.home.is_some() {
        command.arg("--home").arg(&home.state);
    }
    // What keeps it from starting comes back as JSON, because its log may be what cannot be written.
    command.args(["--json", "up", "--foreground", "--detached"]).current_dir("/");
    // Every agent can read the daemon's environment for as long as the daemon lives.
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_the_daemons(name)));
    // The daemon runs in another directory, and relative paths are the caller's.
    command.envs(home::named()?);
    let log = open_log(home).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(|error| {
        let message = format!("the daemon, {}, could not be started: {error}", program.display());
        let missing = "it needs /dev/null and /proc; in a chroot they may be missing";
        let refused = (error.kind() == std::io::ErrorKind::PermissionDenied).then(system::refuses_threads);
        refused.flatten().unwrap_or_else(|| Failure::new(Kind::Failed, message).hint(missing))
    })?;
    let mut said = String::new();
    if let Some(stdout) = child.stdout.take() {
        _ = BufReader::new(stdout).read_line(&mut said);
    }
    if said.trim() == "up" {
        return Ok(Started::Up);
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    if status.code() == Some(75) {
        return Ok(Started::Another);
    }
    Err(did_not_start(home, &said, status))
}

/// Whether the daemon keeps a variable of its caller: those that say where things are, and our own. Not those
/// of a run: the caller may be part of one, the daemon is not.
fn is_the_daemons(name: &OsStr) -> bool {
    const OF_A_RUN: [&str; 6] = [
        "PINFOLD_RUN",
        "PINFOLD_SESSION",
        "PINFOLD_FENCE",
        "PINFOLD_SOCKET",
        "PINFOLD_SPOOL",
        LOCK_RUNS_VARIABLE,
    ];
    let Some(name) = name.to_str() else { return false };
    let ours = name.starts_with("PINFOLD_") && !OF_A_RUN.contains(&name);
    let of_rust = ["RUST_BACKTRACE", "RUST_LOG"].contains(&name);
    ours || of_rust || name.starts_with("XDG_") || pinfold_daemon::is_harmless(name)
}

fn did_not_start(home: &Home, said: &str, status: ExitStatus) -> Failure {
    match serde_json::from_str::<ErrorEnvelope>(said) {
        Ok(ErrorEnvelope { error }) => {
            let message = format!("the daemon did not start: {}", error.message);
            Failure::from(ErrorBody { message, ..error })
        }
        Err(_) => Failure::new(Kind::Failed, format!("the daemon did not start: it ended with {status}"))
            .hint(format!("its log is {}", home.daemon_log().display())),
    }
}

fn open_log(home: &Home) -> std::io::Result<std::fs::File> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(no_link).open(home.daemon_log())
}
