//! `status`: shows the daemon's status.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, say};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::object::Status as Object;
use pinfold_core::words;
use serde_json::json;
use std::time::Duration;

/// Nothing to choose.
#[derive(Debug, Args)]
pub(crate) struct Status {}

impl DaemonVerb for Status {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let status = daemon.at_once(|client| client.ask(&endpoint::Status::call()))?;
        if daemon.global.json {
            say(&json!(status));
        } else {
            tell(&status);
        }
        Ok(())
    }
}

fn tell(status: &Object) {
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
}
