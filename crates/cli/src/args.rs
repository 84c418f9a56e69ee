//! The command line. What is not built yet is not listed.

use crate::duration;
use crate::error::{Failure, Kind};
use clap::{Args, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Keeps AI agents alive while somebody needs them, and never two at once.
#[derive(Debug, Parser)]
#[command(name = "pinfold", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Command {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

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
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a command under a lock, like flock(1)
    ///
    /// The command is given the lock: it is held while the command, or anything it passed it to, lives,
    /// even if `pinfold lock` is killed. Ends with the command's code, 75 when the lock is busy.
    Lock(Lock),
    /// List every lock that is held now
    Locks,
    /// List everything that uses a directory: holders of locks on, above and below it, and processes in it
    Who {
        /// The directory
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
    /// End the holder of a lock, with its whole tree
    ///
    /// Never frees the lock of a living process otherwise. What was ended is written to the audit.
    Unlock {
        /// A directory, session:NAME or key:ANY
        resource: OsString,
        /// End the holder
        #[arg(long)]
        kill: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// A directory, session:NAME or key:ANY
    pub(crate) resource: OsString,
    /// Wait so long for the lock: 250ms, 10s, 5m, 2h, 7d
    #[arg(long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Say what the lock is held for
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Do not give the lock to the command: it ends with `pinfold lock`
    #[arg(long)]
    pub(crate) close: bool,
    /// The command to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Reads the command line; help and version are printed here.
pub(crate) fn parse() -> Result<Command, (Failure, Global)> {
    Command::try_parse()
        .map_err(|error| if error.use_stderr() { (usage(&error), guess_global()) } else { error.exit() })
}

fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let missing: Vec<_> =
        text.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    let mut message = first.strip_prefix("error: ").unwrap_or("no verb was given").to_owned();
    if !missing.is_empty() && message.ends_with(':') {
        message = format!("{message} {}", missing.join(" "));
    }
    let tip = lines.find_map(|line| line.strip_prefix("tip: ").map(str::to_owned));
    Failure::new(Kind::Usage, message)
        .hint(tip.unwrap_or_else(|| "`pinfold --help` lists what can be done".into()))
}

/// A line that cannot be read may still have asked for JSON.
fn guess_global() -> Global {
    let ours = std::env::args_os().skip(1).take_while(|word| word != "--");
    Global { json: ours.into_iter().any(|word| word == "--json"), ..Global::default() }
}
