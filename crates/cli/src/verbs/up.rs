//! `up`: starts the daemon, and returns when it answers.

use crate::daemon::{self, Daemon};
use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::output::{Failure, ProgressLine, say, talk};
use crate::send_away::send_away;
use crate::{home, inside};
use clap::Args;
use pinfold_api::{endpoint, request};
use serde_json::json;

/// Which `up`.
#[derive(Debug, Clone, Copy, Args)]
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

impl StandaloneVerb for Up {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        if self.foreground {
            return daemon::run(global, self.detached);
        }
        if self.replace {
            let home = home::home(global)?;
            // Before the old daemon leaves: inside a run, no new one could be started in its place.
            inside::refuse(&home, "up --replace")?;
            send_away(&home, request::Down { keep: true, replace: true })?;
        }
        let progress = progress(global);
        let client = Daemon { global: global.starting() }.client()?;
        let status = client.ask(&endpoint::Status::call());
        drop(progress);
        let status = status?;
        if global.json {
            say(&json!(status));
        } else if !global.quiet {
            talk(&format!("the daemon is up (pid {}, {})", status.pid, status.home));
        }
        Ok(())
    }
}

/// Shows how many sessions a starting daemon has looked at.
fn progress(global: &Global) -> ProgressLine {
    let of = global.clone();
    ProgressLine::begin(global, move |_| {
        let home = home::home(&of).ok()?;
        let starting = daemon::at(&home).ping().ok().and_then(|ping| ping.starting);
        Some(match starting {
            Some(starting) if starting.of > 0 => {
                format!("starting: {} of {} sessions are looked at", starting.seen, starting.of)
            }
            Some(_) | None => "starting the daemon".to_owned(),
        })
    })
}
