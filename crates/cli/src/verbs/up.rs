//! `up`: starts the daemon, and returns when it answers.

use crate::daemon::{self, Daemon};
use crate::doing::Alone;
use crate::global::Global;
use crate::output::{Failure, say, talk};
use crate::send_away::send_away;
use crate::{home, inside};
use clap::Args;
use pinfold_api::endpoint;
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

impl Alone for Up {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        if self.foreground {
            return daemon::run(global, self.detached);
        }
        if self.replace {
            let home = home::home(global)?;
            // Before the old one goes: no other is started in its place here.
            inside::refuse(&home, "up --replace")?;
            send_away(&home, true)?;
        }
        let client = Daemon { global: global.starting() }.client()?;
        let status = client.ask(&endpoint::Status::call())?;
        if global.json {
            say(&json!(status));
        } else if !global.quiet {
            talk(&format!("the daemon is up (pid {}, {})", status.pid, status.home));
        }
        Ok(())
    }
}
