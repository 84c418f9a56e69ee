//! `rm`: deletes sessions for good.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::output::{Failure, Kind};
use crate::several::{self, Done};
use crate::worktree;
use clap::Args;
use pinfold_api::object::Removed;
use pinfold_api::word::State;
use pinfold_api::{Client, ClientError, ErrorKind, endpoint};
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
}

impl Asks for Rm {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        if !self.yes {
            let names = self.sessions.join(", ");
            let text = format!("rm deletes the record, the inbox and the output of {names} for good");
            return Err(Failure::new(Kind::Usage, text).hint("`--yes` does it; the archive keeps everything"));
        }
        if self.worktree {
            return worktree::remove(&self.sessions, daemon, removed);
        }
        several::each(&self.sessions, daemon, |client, session| {
            let removed = removed(client, session)?;
            Ok(Done { words: words_of(&removed), object: json!(removed) })
        })
    }
}

/// Deletes one. A session that rests is archived first; one that lives is not touched.
fn removed(client: &Client, session: &str) -> Result<Removed, ClientError> {
    let refused = match client.ask(&endpoint::Remove::call(session)) {
        Err(ClientError::Refused(body)) if body.kind == ErrorKind::Failed => body,
        answer => return answer,
    };
    let found = client.ask(&endpoint::Show::call(session))?;
    match found.state {
        // By its id: its name is free when it is archived.
        State::Stopped | State::Failed | State::Idle => {
            client.ask(&endpoint::Archive::call(&found.id))?;
            client.ask(&endpoint::Remove::call(&found.id))
        }
        State::Starting
        | State::Running
        | State::Stopping
        | State::Backoff
        | State::Blocked
        | State::Held
        | State::Archived
        | State::Damaged
        | State::Unknown
        | State::Other(_) => Err(ClientError::Refused(refused)),
    }
}

fn words_of(removed: &Removed) -> String {
    let Removed { name, messages, runs, bytes, .. } = removed;
    let size = words::size(*bytes);
    format!("{name} is deleted: its record, {messages} messages, {runs} runs, {size} of files")
}
