//! `up`, `down`, `status`: the daemon itself.

use super::say;
use crate::args::Global;
use crate::connect;
use crate::error::Failure;
use pinfold_api::ClientError;
use pinfold_api::object::Status;
use pinfold_core::words;
use serde_json::{Value, json};
use std::time::Duration;

/// Which `up`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Up {
    /// Run the daemon in the foreground
    #[arg(long)]
    foreground: bool,
    /// Take over from a running daemon; agents are not disturbed
    #[arg(long, conflicts_with = "foreground")]
    replace: bool,
    #[arg(long, hide = true, requires = "foreground")]
    detached: bool,
}

pub(crate) fn up(up: Up, global: &Global) -> Result<(), Failure> {
    if up.foreground {
        return connect::run_daemon(global, up.detached);
    }
    if up.replace {
        send_away(global, true)?;
    }
    let client = connect::client(&Global { no_start: false, ..global.clone() })?;
    let status: Status = client.get("/v1/status")?;
    if global.json {
        say(&json!(status));
    } else if !global.quiet {
        eprintln!("the daemon is up (pid {}, {})", status.pid, status.home);
    }
    Ok(())
}

pub(crate) fn down(keep: bool, global: &Global) -> Result<(), Failure> {
    let was_up = send_away(global, keep)?;
    if global.json {
        say(&json!({ "was_up": was_up }));
    } else if !global.quiet {
        eprintln!("{}", if was_up { "the daemon is down" } else { "the daemon was down already" });
    }
    Ok(())
}

/// Asks the daemon to go, and returns when it has; `false` when there was none.
fn send_away(global: &Global, keep: bool) -> Result<bool, Failure> {
    let client = match connect::running(global) {
        Ok(client) => client,
        Err(failure) if failure.is_down() => return Ok(false),
        Err(failure) => return Err(failure),
    };
    match client.post::<Value>("/v1/daemon/down", &json!({ "keep": keep })) {
        // It may be gone before its answer is out.
        Ok(_) | Err(ClientError::Broken(_) | ClientError::Down { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    wait_until_gone(global)?;
    Ok(true)
}

/// The daemon's lock is free when its process has ended, whatever its socket says.
fn wait_until_gone(global: &Global) -> Result<(), Failure> {
    let home = connect::home(global)?;
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(home.daemon_lock(), flags, rustix::fs::Mode::empty()) else {
        return Ok(());
    };
    // Shared: several who wait do not keep a new daemon out for longer than this call.
    _ = rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared);
    Ok(())
}

pub(crate) fn status(global: &Global) -> Result<(), Failure> {
    let status: Status =
        connect::at_once(&connect::never_starting(global), |client| client.get("/v1/status"))?;
    if global.json {
        say(&json!(status));
        return Ok(());
    }
    say(&format!(
        "pinfold {} is up for {}",
        status.version,
        words::duration(Duration::from_millis(status.uptime_ms))
    ));
    say(&format!("pid       {}", status.pid));
    say(&format!("home      {} ({} on disk)", status.home, words::size(status.disk_bytes)));
    say(&format!("socket    {}", status.socket));
    let counts: Vec<String> =
        status.sessions.iter().map(|(state, count)| format!("{count} {state}")).collect();
    say(&format!("sessions  {}", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }));
    if !status.damaged.is_empty() {
        say(&format!("damaged   {}", status.damaged.join(", ")));
    }
    for problem in &status.database {
        say(&format!("database  {problem}"));
    }
    for unknown in &status.unknown {
        say(&format!("unknown   {}: {}", unknown.id, unknown.why));
    }
    if let Some(problem) = &status.config_refused {
        say(&format!("config    as it was before; refused: {problem}"));
    }
    for (ability, value) in &status.capabilities {
        let word = if value["available"] == true { "yes" } else { "no" };
        say(&format!("{ability:<14}  {word}: {}", value["detail"].as_str().unwrap_or_default()));
    }
    Ok(())
}
