//! `up`, `down`, `status`: the daemon itself.

use super::left::none_left;
use super::{say, talk};
use crate::args::Global;
use crate::connect::{self, Found};
use crate::error::{Failure, Kind};
use crate::{inside, places};
use pinfold_api::object::{Status, WentDown};
use pinfold_api::{ClientError, place};
use pinfold_core::words;
use pinfold_daemon::Home;
use pinfold_lock::LockSeen;
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::Duration;

/// A daemon that has answered to `down` has only its database to close.
const ENDS_WITHIN: Duration = Duration::from_secs(8);

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
        let home = connect::home(global)?;
        // Before the old one goes: no other is started in its place here.
        inside::refuse(&home, "up --replace")?;
        send_away(&home, true)?;
    }
    let client = connect::client(&Global { no_start: false, ..global.clone() })?;
    let status: Status = client.get("/v1/status")?;
    if global.json {
        say(&json!(status));
    } else if !global.quiet {
        talk(&format!("the daemon is up (pid {}, {})", status.pid, status.home));
    }
    Ok(())
}

pub(crate) fn down(keep: bool, global: &Global) -> Result<(), Failure> {
    let home = connect::home(global)?;
    inside::refuse(&home, "down")?;
    let (was_up, running) = match send_away(&home, keep)? {
        Gone::Now => (true, Vec::new()),
        Gone::Before => (false, running_on(global)?),
    };
    if global.json {
        say(&json!({ "was_up": was_up, "running": running }));
    } else if !global.quiet {
        talk(&if was_up { "the daemon is down" } else { "the daemon was down already" });
        if !running.is_empty() {
            talk(&warning(&running));
            talk(&"hint: `pinfold up`, then `pinfold down`, stops them");
        }
    }
    Ok(())
}

/// When a daemon went.
enum Gone {
    /// It was asked to.
    Now,
    /// There was none.
    Before,
}

/// Asks the daemon to go, and returns when it has.
fn send_away(home: &Home, keep: bool) -> Result<Gone, Failure> {
    let Found::Up(client) = connect::find(home)? else { return Ok(Gone::Before) };
    let went: WentDown = match client.post("/v1/daemon/down", &json!({ "keep": keep })) {
        Ok(went) => went,
        // It may be gone before its answer is out.
        Err(ClientError::Broken(_) | ClientError::Down { .. }) => WentDown::default(),
        Err(error) => return Err(error.into()),
    };
    wait_until_gone(home)?;
    let hint = "their locks stay held; `pinfold up` finds them again";
    none_left(&went.left, "the daemon is down, but not everything has ended", hint)?;
    Ok(Gone::Now)
}

/// The daemon's locks are free when its process has ended, whatever its socket says.
fn wait_until_gone(home: &Home) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::channel();
    let locks = place::locks(&home.state);
    std::thread::spawn(move || {
        for file in locks.iter().filter_map(|lock| std::fs::File::open(lock).ok()) {
            // Shared: several who wait do not keep a new daemon out for longer than this call.
            _ = rustix::fs::flock(&file, rustix::fs::FlockOperation::LockShared);
        }
        _ = sender.send(());
    });
    receiver.recv_timeout(ENDS_WITHIN).map_err(|_| connect::mute(home).into())
}

/// The daemon's sessions that live although it does not, as their locks tell. `pinfold run` and `lock` are no such.
fn running_on(global: &Global) -> Result<Vec<Value>, Failure> {
    let Some(folder) = places::session_locks(global)? else { return Ok(Vec::new()) };
    let locks = folder.locks().map_err(|errno| Failure::from_error(Kind::Failed, &errno))?;
    let object = |lock: &LockSeen| {
        let name = lock.resource.strip_prefix("session:")?;
        Some(json!({ "name": name, "pid": lock.holder.identity.map(|identity| identity.pid) }))
    };
    let of_daemon = |lock: &&LockSeen| lock.reason.as_deref() == Some(pinfold_daemon::BY_DAEMON);
    Ok(locks.iter().filter(of_daemon).filter_map(object).collect())
}

fn warning(running: &[Value]) -> String {
    /// More names than this are a list that nobody reads.
    const SHOWN: usize = 5;
    let named = |one: &Value| match one["pid"].as_u64() {
        Some(pid) => format!("{} (pid {pid})", one["name"].as_str().unwrap_or_default()),
        None => one["name"].as_str().unwrap_or_default().to_owned(),
    };
    let mut names: Vec<String> = running.iter().take(SHOWN).map(named).collect();
    if running.len() > SHOWN {
        names.push("...".to_owned());
    }
    let (count, names) = (running.len(), names.join(", "));
    let subject = if count == 1 { "1 agent runs on".to_owned() } else { format!("{count} agents run on") };
    format!("warning: {subject} without a daemon: {names}")
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
    if let Some(problem) = &status.socket_refused {
        say(&format!("          not where it usually is: {problem}"));
    }
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
