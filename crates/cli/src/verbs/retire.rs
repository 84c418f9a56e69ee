//! `restore`, `purge`, `rm`: what goes to the archive and what becomes of it there.

use super::left::none_left;
use super::sessions::path;
use super::several::{self, Done};
use super::{say, talk};
use crate::args::Global;
use crate::connect;
use crate::error::{Failure, Kind};
use clap::Args;
use pinfold_api::object::{Purged, Removed, Session};
use pinfold_api::request::{Caller, Purge as Request};
use pinfold_core::words;
use serde_json::json;

/// What comes back.
#[derive(Debug, Clone, Args)]
pub(crate) struct Restore {
    /// Which
    #[arg(required_unless_present = "all")]
    sessions: Vec<String>,
    /// Every archived session whose name is free
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
}

pub(crate) fn restore(restore: &Restore, global: &Global) -> Result<(), Failure> {
    if !restore.all {
        return super::sessions::each(&restore.sessions, "restore", &json!({}), global);
    }
    let restored: Vec<Session> = connect::client(global)?.post("/v1/restore", &json!({}))?;
    if global.json {
        say(&json!(restored));
    } else if !global.quiet {
        restored.iter().for_each(|session| talk(&format!("{} is {}", session.name, session.why)));
        if restored.is_empty() {
            talk(&"nothing to do: no session is archived under a free name");
        }
    }
    Ok(())
}

/// What is cleared out.
#[derive(Debug, Clone, Args)]
pub(crate) struct Purge {
    /// Those in use too: with a consumer, a turn under way or a queued message, and your own
    #[arg(long)]
    include_active: bool,
    /// Sessions of this mode: on-demand (unless it says so), always, once or all
    #[arg(long, value_name = "M")]
    mode: Option<String>,
    /// Only say what would be archived
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn purge(purge: &Purge, global: &Global) -> Result<(), Failure> {
    let request = Request {
        include_active: purge.include_active,
        mode: purge.mode.clone(),
        dry_run: purge.dry_run,
        caller: caller(),
    };
    let purged: Purged = connect::client(global)?.post("/v1/purge", &request)?;
    if !global.json && !global.quiet {
        tell(&purged, purge.dry_run);
    }
    let hint = "they are archived as soon as that has ended";
    none_left(&purged.left, "not everything could be archived", hint)?;
    if global.json {
        say(&json!(purged));
    }
    Ok(())
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

/// Who asks: whatever this process was given, and whoever is above it.
fn caller() -> Caller {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    Caller {
        session: variable("PINFOLD_SESSION"),
        run: variable("PINFOLD_RUN"),
        socket: variable("PINFOLD_SOCKET"),
        ancestors: crate::inside::above(),
    }
}

pub(crate) fn rm(sessions: &[String], yes: bool, global: &Global) -> Result<(), Failure> {
    if !yes {
        let text =
            format!("rm deletes the record, the inbox and the output of {} for good", sessions.join(", "));
        return Err(Failure::new(Kind::Usage, text).hint("`--yes` does it; the archive keeps everything"));
    }
    several::each(sessions, global, |client, session| {
        let removed: Removed = client.delete(&path(session, ""))?;
        let Removed { name, messages, runs, bytes, .. } = &removed;
        let size = words::size(*bytes);
        let words =
            format!("{name} is deleted: its record, {messages} messages, {runs} runs, {size} of files");
        Ok(Done { words, object: json!(removed) })
    })
}
