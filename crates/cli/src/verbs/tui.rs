//! `tui`: the terminal UI.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::output::Failure;
use crate::tui;
use clap::Args;

/// It takes nothing of its own.
#[derive(Debug, Args)]
pub(crate) struct Tui {}

impl Asks for Tui {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        tui::open(daemon)
    }
}
