//! The options that every verb takes.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// What every verb takes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Global {
    /// Keep everything below DIR (also: PINFOLD_HOME)
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) home: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but errors on stderr
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Never start the daemon
    #[arg(long, global = true)]
    pub(crate) no_start: bool,
    /// Use a home that was not made here, from now on: it says which programs are run
    #[arg(long, global = true)]
    pub(crate) trust: bool,
}

impl Global {
    /// The same options, but no daemon is started.
    pub(crate) fn never_starting(&self) -> Global {
        Global { no_start: true, ..self.clone() }
    }

    /// The same options, with a daemon started if none runs.
    pub(crate) fn starting(&self) -> Global {
        Global { no_start: false, ..self.clone() }
    }
}
