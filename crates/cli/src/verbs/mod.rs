//! The verbs, one file each. Verbs that are not built yet are not listed.

mod accounts;
mod agents;
mod answer;
mod apply;
mod archive;
mod attach;
mod backup;
mod completions;
mod demo;
mod down;
mod events;
mod export;
mod help;
mod inbox;
mod interrupt;
mod lock;
mod locks;
mod logs;
mod ls;
mod man;
mod metrics;
mod new;
mod purge;
mod reload;
mod rename;
mod restart;
mod restore;
mod restore_backup;
mod rm;
mod run;
mod search;
mod send;
mod service;
mod set;
mod show;
mod start;
mod status;
mod stop;
mod tree;
mod tui;
mod unlock;
mod up;
mod usage;
mod version;
mod wait;
mod who;
mod why;

use crate::doing::Doing;
use clap::Subcommand;

pub(crate) use ls::Ls;
pub(crate) use send::Send;
pub(crate) use status::Status;
pub(crate) use tui::Tui;

/// What can be done. The comments are the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start the daemon, and return when it answers
    Up(up::Up),
    /// Stop the agents, then the daemon
    Down(down::Down),
    /// Show what pinfold does, in a home of its own that is thrown away
    ///
    /// Sessions that run, crash and chat, a daemon that is killed, a double that is refused. Ends by itself within
    /// half a minute and leaves nothing behind.
    Demo(demo::Demo),
    /// Show the daemon's status
    Status(status::Status),
    /// Create a session, and print its id
    ///
    /// `always` and `once` start at once, `on-demand` when it is needed. The agent gets harmless variables of yours and
    /// those that its preset names; others with `--env`. A busy lock does not prevent creation: it is `blocked` then.
    New(new::New),
    /// Supervise a program in the foreground, without a daemon
    ///
    /// Takes the options of `new` and the same locks: 75 when one is busy, and nothing is started. Runs once unless
    /// `--mode always`. The program has the caller's standard streams. SIGINT and SIGTERM stop it gently, a second
    /// one at once; when this process is killed, everything that it started ends. Ends with the program's last exit
    /// code, 128 and the signal that killed it, or 1 when the crash limit is reached.
    Run(run::Run),
    /// Change a session; takes effect with its next run
    Set(set::Set),
    /// List sessions
    Ls(ls::Ls),
    /// Show a session on one page: state, last exit, processes, memory, last lines
    Show(show::Show),
    /// List sessions below their parents
    Tree(tree::Tree),
    /// Open the terminal UI: every session, and who waits for you
    ///
    /// `pinfold` alone on a terminal does the same. `?` shows its keys. Agents go on when it is left.
    Tui(tui::Tui),
    /// Say in a sentence what a session does, why, and what comes next
    Why(why::Why),
    /// Find words in names, messages, answers and whys; best first
    Search(search::Search),
    /// Join the terminal of a session, or take it over; Ctrl-] detaches
    ///
    /// A session with a terminal of its own (`new --pty`) is joined; many may look on, one types. A headless one
    /// finishes its turn and makes room for its agent's own terminal program, under the same locks; where the
    /// agent's preset says `attach = "join"`, that program comes beside the run, which goes on. Any other one is
    /// followed, and lines that are typed are sent as messages.
    Attach(attach::Attach),
    /// Queue a message for a session, and print its id
    Send(send::Send),
    /// List a session's messages, or try one again, or cancel one
    Inbox(inbox::Inbox),
    /// End the turn under way, and keep the run
    Interrupt(interrupt::Interrupt),
    /// Answer a permission request
    Answer(answer::Answer),
    /// Print what a session's agents printed
    Logs(logs::Logs),
    /// Print what happened
    Events(events::Events),
    /// Start sessions; a person's start begins a new crash streak
    Start(start::Start),
    /// Stop sessions with everything they started
    Stop(stop::Stop),
    /// End the run of sessions and start another
    Restart(restart::Restart),
    /// Archive sessions: stop them, and keep record, inbox and history
    Archive(archive::Archive),
    /// Bring archived sessions back, parked
    Restore(restore::Restore),
    /// Archive every session that is not in use
    Purge(purge::Purge),
    /// Delete sessions for good
    ///
    /// Takes archived sessions, and with `--yes` also those that are stopped, failed or idle. A session that runs is not touched.
    Rm(rm::Rm),
    /// Make sessions match a file; shows what differs, and changes nothing twice
    ///
    /// What the file does not say of a session stays as it is. A running session follows with its next run.
    Apply(apply::Apply),
    /// Write sessions as a file that `apply` reads: names of variables, never their values
    Export(export::Export),
    /// Read config.toml again; sessions follow with their next run
    ///
    /// Also done by itself when the file has changed and a session is made or changed. A file with something wrong in it
    /// leaves the old configuration in force (78).
    Reload(reload::Reload),
    /// Start the daemon when the machine starts, or stop doing so
    Service(service::Service),
    /// Give a session another name
    ///
    /// Its lock is known by its name, so it must not be running (75).
    Rename(rename::Rename),
    /// Wait until a session is in a state
    Wait(wait::Wait),
    /// Copy the database to a new file, while it is in use
    ///
    /// The copy is consistent, only you can read it, and it has the values of `--env`. It is made by the daemon.
    Backup(backup::Backup),
    /// Put a backup in the place of the database; the daemon must be down
    ///
    /// What was there is kept beside it, as `pinfold.db.old`. Refused (75) while the daemon is up, and while agents
    /// live that a daemon started after the backup was made.
    RestoreBackup(restore_backup::RestoreBackup),
    /// Run a command under a lock, like flock(1)
    ///
    /// The command is given the lock: it is held while the command, or anything it passed it to, lives,
    /// even if `pinfold lock` is killed. Ends with the command's code, 75 when the lock is busy.
    Lock(lock::Lock),
    /// List accounts: their limits, how much is used, when each resets, and who is held
    ///
    /// An account is the credential that sessions use, never shown by its value. `--resume` lets a held one go on:
    /// a session tries, and the others follow when that goes well.
    Accounts(accounts::Accounts),
    /// List the known agents, where each was found, and its version
    Agents(agents::Agents),
    /// List every lock that is held now
    Locks(locks::Locks),
    /// Sum up what agents reported as used: tokens and cost
    Usage(usage::Usage),
    /// Print metrics, as Prometheus reads them
    Metrics(metrics::Metrics),
    /// List everything that uses a directory: holders of locks on, above and below it, and processes in it
    Who(who::Who),
    /// End the holder of a lock, with its whole tree
    ///
    /// There is no other way to free the lock of a living process. What was ended is written to the audit log.
    Unlock(unlock::Unlock),
    /// Print completions for bash, zsh or fish
    ///
    /// The shell asks this program for verbs, options, and names of sessions with their states; nothing is started.
    Completions(completions::Completions),
    /// What shells ask.
    #[command(hide = true)]
    Complete(completions::Complete),
    /// Print man pages
    Man(man::Man),
    /// List all verbs, or explain one
    Help(help::Help),
    /// Print the version
    Version(version::Version),
}

impl Verb {
    /// How each verb is carried out. A new verb stops the build here.
    pub(crate) fn doing(&self) -> Doing<'_> {
        match self {
            Verb::Up(verb) => Doing::Alone(verb),
            Verb::Down(verb) => Doing::Alone(verb),
            Verb::Demo(verb) => Doing::Alone(verb),
            Verb::Status(verb) => Doing::Looks(verb),
            Verb::New(verb) => Doing::Asks(verb),
            Verb::Run(verb) => Doing::Runs(verb),
            Verb::Set(verb) => Doing::Asks(verb),
            Verb::Ls(verb) => Doing::Asks(verb),
            Verb::Show(verb) => Doing::Asks(verb),
            Verb::Tree(verb) => Doing::Asks(verb),
            Verb::Tui(verb) => Doing::Asks(verb),
            Verb::Why(verb) => Doing::Asks(verb),
            Verb::Search(verb) => Doing::Asks(verb),
            Verb::Attach(verb) => Doing::Asks(verb),
            Verb::Send(verb) => Doing::Asks(verb),
            Verb::Inbox(verb) => Doing::Asks(verb),
            Verb::Interrupt(verb) => Doing::Asks(verb),
            Verb::Answer(verb) => Doing::Asks(verb),
            Verb::Logs(verb) => Doing::Asks(verb),
            Verb::Events(verb) => Doing::Asks(verb),
            Verb::Start(verb) => Doing::Asks(verb),
            Verb::Stop(verb) => Doing::Asks(verb),
            Verb::Restart(verb) => Doing::Asks(verb),
            Verb::Archive(verb) => Doing::Asks(verb),
            Verb::Restore(verb) => Doing::Asks(verb),
            Verb::Purge(verb) => Doing::Asks(verb),
            Verb::Rm(verb) => Doing::Asks(verb),
            Verb::Apply(verb) => Doing::Asks(verb),
            Verb::Export(verb) => Doing::Asks(verb),
            Verb::Reload(verb) => Doing::Asks(verb),
            Verb::Service(verb) => Doing::Alone(verb),
            Verb::Wait(verb) => Doing::Asks(verb),
            Verb::Backup(verb) => Doing::Asks(verb),
            Verb::RestoreBackup(verb) => Doing::Alone(verb),
            Verb::Lock(verb) => Doing::Runs(verb),
            Verb::Accounts(verb) => Doing::Looks(verb),
            Verb::Agents(verb) => Doing::Alone(verb),
            Verb::Locks(verb) => Doing::Alone(verb),
            Verb::Usage(verb) => Doing::Asks(verb),
            Verb::Metrics(verb) => Doing::Asks(verb),
            Verb::Who(verb) => Doing::Alone(verb),
            Verb::Unlock(verb) => Doing::Alone(verb),
            Verb::Rename(verb) => Doing::Asks(verb),
            Verb::Completions(verb) => Doing::Alone(verb),
            Verb::Complete(verb) => Doing::Explains(verb),
            Verb::Man(verb) => Doing::Explains(verb),
            Verb::Help(verb) => Doing::Explains(verb),
            Verb::Version(verb) => Doing::Alone(verb),
        }
    }
}
