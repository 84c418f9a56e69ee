//! `attach`: joins a session's terminal, takes over a headless session, or follows it.

use crate::attach::{self, AttachOptions};
use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::Failure;
use clap::Args;
use pinfold_shim::attach::Seat;

/// How to attach.
#[derive(Debug, Clone, Args)]
pub(crate) struct Attach {
    /// Its name, or a unique beginning of its id
    session: String,
    /// Do not wait: interrupt the turn under way, or take the keyboard
    #[arg(long)]
    now: bool,
    /// Only look on
    #[arg(long, conflicts_with_all = ["now", "share"])]
    read_only: bool,
    /// Type as well as the client that has the keyboard
    #[arg(long)]
    share: bool,
}

impl DaemonVerb for Attach {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        attach::attach(
            &AttachOptions {
                session: &self.session,
                now: self.now,
                read_only: self.read_only,
                seat: self.seat(),
            },
            daemon,
        )
    }
}

impl Attach {
    fn seat(&self) -> Seat {
        match (self.read_only, self.share, self.now) {
            (true, _, _) => Seat::Watches,
            (false, true, _) => Seat::Shares,
            (false, false, true) => Seat::Takes,
            (false, false, false) => Seat::Waits,
        }
    }
}
