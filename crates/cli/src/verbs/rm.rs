//! `rm`: deletes sessions for good.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Kind};
use crate::removal;
use crate::several::{self, SessionOutcome};
use crate::worktree::{self, Removal};
use clap::Args;
use pinfold_api::object::Removed;
use pinfold_api::query::AlsoRemoved;
use pinfold_core::words;
use serde_json::json;

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// One or more session names
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Confirm it; one that is stopped, failed or idle is archived first
    #[arg(long)]
    yes: bool,
    /// Remove their git worktrees too, unless one has work that is nowhere else
    #[arg(long)]
    worktree: bool,
    /// Remove the agents' own transcripts of their conversations too
    #[arg(long)]
    with_conversation: bool,
    /// With --worktree: remove ignored files and submodules too, but never changed or untracked files
    #[arg(long, requires = "worktree")]
    force: bool,
}

impl DaemonVerb for Rm {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        if !self.yes {
            let names = self.sessions.join(", ");
            let text = format!("rm deletes the record, the inbox and the output of {names} for good");
            return Err(Failure::new(Kind::Usage, text).hint("`--yes` does it; the archive keeps everything"));
        }
        let also = AlsoRemoved { with_conversation: self.with_conversation };
        if self.worktree {
            return worktree::remove(&self.sessions, Removal { force: self.force, also }, daemon);
        }
        several::each(&self.sessions, daemon, |client, session| {
            let removed = removal::removed(client, session, also)?;
            Ok(SessionOutcome { words: words_of(&removed), object: json!(removed) })
        })
    }
}

fn words_of(removed: &Removed) -> String {
    let Removed { name, messages, runs, bytes, .. } = removed;
    let size = words::size(*bytes);
    let (messages, runs) = (counted(*messages, "message"), counted(*runs, "run"));
    format!("{name} is deleted: its record, {messages}, {runs}, {size} of files")
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
