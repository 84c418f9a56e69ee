//! How a verb is carried out, and so what it may use: only a verb that asks the daemon is given one.

use crate::daemon::Daemon;
use crate::global::Global;
use crate::output::Failure;
use clap::Command;
use std::process::ExitCode;

/// The ways to carry out a verb.
pub(crate) enum Doing<'a> {
    /// By this process: without the daemon, or on the daemon itself.
    Alone(&'a dyn StandaloneVerb),
    /// By another program, whose exit code is the answer.
    Runs(&'a dyn ProgramVerb),
    /// By the daemon, which is started where none runs.
    Asks(&'a dyn DaemonVerb),
    /// By this process, from the definition of the command line.
    Explains(&'a dyn HelpVerb),
    /// By a daemon that already runs; none is started for it.
    Looks(&'a dyn DaemonVerb),
}

/// A verb that needs no daemon.
pub(crate) trait StandaloneVerb {
    /// Carries out the verb.
    fn act(&self, global: &Global) -> Result<(), Failure>;
}

/// A verb about the command line itself.
pub(crate) trait HelpVerb {
    /// Carries out the verb, given the definition of the command line.
    fn explain(&self, program: &Command, global: &Global) -> Result<(), Failure>;
}

/// A verb that runs a program to its end.
pub(crate) trait ProgramVerb {
    /// Runs the program and returns its exit code.
    fn run(&self, global: &Global) -> Result<ExitCode, Failure>;
}

/// A verb that the daemon carries out.
pub(crate) trait DaemonVerb {
    /// Carries out the verb.
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure>;
}

impl Doing<'_> {
    /// Carries out the verb; `definition` makes the definition of the command line where it is needed.
    pub(crate) fn done(&self, global: &Global, definition: fn() -> Command) -> Result<ExitCode, Failure> {
        match self {
            Doing::Runs(verb) => return verb.run(global),
            Doing::Alone(verb) => verb.act(global),
            Doing::Explains(verb) => verb.explain(&definition(), global),
            Doing::Asks(verb) => verb.ask(&Daemon { global: global.clone() }),
            Doing::Looks(verb) => verb.ask(&Daemon { global: global.never_starting() }),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}
