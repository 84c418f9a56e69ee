//! `purge`: archives every session that is not in use.

use crate::daemon::{self, Daemon};
use crate::doing::DaemonVerb;
use crate::inside;
use crate::leftovers::none_left;
use crate::output::{Failure, ProgressLine, say, talk};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::object::Purged;
use pinfold_api::request;
use serde_json::json;

/// What is cleared out.
#[derive(Debug, Clone, Args)]
pub(crate) struct Purge {
    /// Take those in use too: with a client, a turn under way or a queued message, and your own
    #[arg(long)]
    include_active: bool,
    /// Sessions of this mode: on-demand, always, once or all [default: on-demand]
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Only say what would be archived
    #[arg(long)]
    dry_run: bool,
}

impl DaemonVerb for Purge {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let request = request::Purge {
            include_active: self.include_active,
            mode: self.mode.clone(),
            dry_run: self.dry_run,
            caller: inside::caller(),
        };
        let client = daemon.client()?;
        let progress = self.progress(daemon);
        let purged = client.ask(&endpoint::Purge::call(&request));
        drop(progress);
        let purged = purged?;
        if !daemon.global.json && !daemon.global.quiet {
            tell(&purged, self.dry_run);
        }
        let hint = "they are archived as soon as that has ended";
        none_left(&purged.left, "not everything could be archived", hint)?;
        if daemon.global.json {
            say(&json!(purged));
        }
        Ok(())
    }
}

impl Purge {
    /// Shows how many runs are still ending.
    fn progress(&self, daemon: &Daemon) -> ProgressLine {
        let global = daemon.global.clone();
        ProgressLine::begin(&daemon.global, move |_| {
            let status = daemon::running(&global).ok()?.ask(&endpoint::Status::call()).ok()?;
            let stopping = status.sessions.get("stopping").copied().unwrap_or(0);
            (stopping > 0).then(|| format!("archiving: {stopping} runs are ending"))
        })
    }
}

fn tell(purged: &Purged, dry_run: bool) {
    let word = if dry_run { "would be archived" } else { "is archived" };
    purged.archived.iter().for_each(|name| talk(&format!("{name} {word}")));
    purged
        .skipped
        .iter()
        .for_each(|skipped| talk(&format!("{} is left alone: {}", skipped.name, skipped.why)));
    if purged.archived.is_empty() && purged.left.is_empty() {
        talk(&"nothing to do");
    }
}
