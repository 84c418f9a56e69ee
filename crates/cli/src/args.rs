//! The command line. What is not built yet is not listed.

use crate::attach::Attach;
use crate::error::{Failure, Kind};
use crate::verbs::{Defining, Events, Inbox, Listing, Logs, Permission, Purge, Restore, Send, Up};
use clap::{Args, Parser, Subcommand, ValueHint};
use pinfold_api::units;
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
    /// Use a home that was not made here, from now on: it says which programs are run
    #[arg(long, global = true)]
    pub(crate) trust: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start the daemon, and return when it answers
    Up(Up),
    /// Stop the agents, then the daemon
    Down {
        /// Leave the agents running under their shims
        #[arg(long)]
        keep: bool,
    },
    /// Show what pinfold does, in a home of its own that is thrown away
    ///
    /// Sessions that run, crash and chat, a daemon that is killed, a double that is refused. Ends by itself within
    /// half a minute and leaves nothing behind.
    Demo,
    /// Tell about the daemon
    Status,
    /// Create a session, and print its id
    New(Defining),
    /// Supervise a program in the foreground, without a daemon
    ///
    /// Takes the options of `new` and the same locks: 75 when one is busy, and nothing is started. Runs once unless
    /// `--mode always`. The program has the caller's standard streams. SIGINT and SIGTERM stop it gently, a second
    /// one at once; when this process is killed, everything that it started ends. Ends with the program's last exit
    /// code, 128 and the signal that killed it, or 1 when the crash limit is reached.
    Run(Defining),
    /// Change a session; takes effect with its next run
    Set(Defining),
    /// List sessions
    Ls(Listing),
    /// Tell everything about a session
    Show {
        /// Its name, or a unique beginning of its id
        session: String,
    },
    /// List sessions below their parents
    Tree {
        /// Archived ones too
        #[arg(long)]
        all: bool,
    },
    /// Say in a sentence what a session does, why, and what comes next
    Why {
        /// Its name, or a unique beginning of its id
        session: String,
    },
    /// Join the terminal of a session, or take it over; Ctrl-] detaches
    ///
    /// A session with a terminal of its own (`new --pty`) is joined; many may look on, one types. A headless one
    /// finishes its turn and makes room for its agent's own terminal program, under the same locks. Any other
    /// one is followed, and lines that are typed are sent as messages.
    Attach(Attach),
    /// Queue a message for a session, and print its id
    Send(Send),
    /// List a session's messages, or try one again, or cancel one
    Inbox(Inbox),
    /// End the turn under way, and keep the run
    Interrupt {
        /// The session
        session: String,
    },
    /// Answer a permission request
    Answer {
        /// The session
        session: String,
        /// What to say
        answer: Permission,
        /// Which request; the oldest unless it says so
        id: Option<String>,
    },
    /// Print what a session's agents printed
    Logs(Logs),
    /// Print what happened
    Events(Events),
    /// Start sessions; a person's start begins a new crash streak
    Start {
        /// Which
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Stop sessions with everything they started
    Stop {
        /// Which
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Instead of the grace before SIGKILL
        #[arg(long, value_name = "DUR")]
        timeout: Option<String>,
    },
    /// End the run of sessions and start another
    Restart {
        /// Which
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Archive sessions: stop them, and keep record, inbox and history
    Archive {
        /// Which
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// Bring archived sessions back, parked
    Restore(Restore),
    /// Archive every session that nobody uses
    Purge(Purge),
    /// Delete archived sessions for good
    Rm {
        /// Which
        #[arg(required = true)]
        sessions: Vec<String>,
        /// Really
        #[arg(long)]
        yes: bool,
    },
    /// Wait until a session is in a state
    Wait {
        /// Its name, or a unique beginning of its id
        session: String,
        /// The states, separated by commas
        #[arg(long = "for", value_name = "STATE[,STATE]")]
        states: String,
        /// Give up after so long (124)
        #[arg(long, value_name = "DUR")]
        timeout: Option<String>,
    },
    /// Copy the database to a new file, while it is in use
    ///
    /// The copy is consistent, only you can read it, and it has the values of `--env`. It is made by the daemon.
    Backup {
        /// The file to make
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Put a backup in the place of the database; the daemon must be down
    ///
    /// What was there is kept beside it, as `pinfold.db.old`. Refused (75) while the daemon is up, and while agents
    /// live that a daemon started after the backup was made.
    RestoreBackup {
        /// The file that `backup` made
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Run a command under a lock, like flock(1)
    ///
    /// The command is given the lock: it is held while the command, or anything it passed it to, lives,
    /// even if `pinfold lock` is killed. Ends with the command's code, 75 when the lock is busy.
    Lock(Lock),
    /// List the known agents, where each was found, and its version
    Agents,
    /// List every lock that is held now
    Locks,
    /// Print metrics, as Prometheus reads them
    Metrics,
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
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
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
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(command) = frequent(&words) {
        return Ok(command);
    }
    let read = Command::try_parse_from(&words);
    read.map_err(|error| if error.use_stderr() { (usage(&error), guess_global()) } else { error.exit() })
}

/// One verb and no other: what scripts and people ask all the time is faster than the making of all verbs.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct Alone<V: Args> {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    verb: V,
}

/// A verb without options.
#[derive(Debug, Args)]
struct Nothing {}

/// A command line that begins with a verb that is used often, and has no mistake: those are told by all of the parser.
fn frequent(words: &[OsString]) -> Option<Command> {
    let rest = words.get(1..)?;
    let bare = |verb| Some(Command { global: Global::default(), verb });
    match (rest.first()?.to_str()?, rest.len()) {
        // Nothing to read: a tenth of what `ls` takes would be spent on it.
        ("ls", 1) => bare(Verb::Ls(Listing::default())),
        ("status", 1) => bare(Verb::Status),
        ("ls", _) => alone(rest, Verb::Ls),
        ("status", _) => alone(rest, |Nothing {}| Verb::Status),
        ("lock", _) => alone(rest, Verb::Lock),
        _ => None,
    }
}

fn alone<V: Args>(words: &[OsString], verb: impl Fn(V) -> Verb) -> Option<Command> {
    let Alone { global, verb: read } = Alone::<V>::try_parse_from(words).ok()?;
    Some(Command { global, verb: verb(read) })
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
