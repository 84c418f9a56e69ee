//! How a verb is done, and so what it may use: only a verb that asks the daemon is given one.

use crate::daemon::Daemon;
use crate::global::Global;
use crate::output::Failure;
use clap::Command;
use std::process::ExitCode;

/// One way for each verb.
pub(crate) enum Doing<'a> {
    /// By this process: without the daemon, or on the daemon itself.
    Alone(&'a dyn Alone),
    /// By another program, whose exit code is the answer.
    Runs(&'a dyn Runs),
    /// By the daemon, which is started where none runs.
    Asks(&'a dyn Asks),
    /// By this process, of the definition of the command line.
    Explains(&'a dyn Explains),
    /// By a daemon that runs already; none is started for it.
    Looks(&'a dyn Asks),
}

/// A verb that needs no daemon.
pub(crate) trait Alone {
    /// Does it.
    fn act(&self, global: &Global) -> Result<(), Failure>;
}

/// A verb about the command line itself.
pub(crate) trait Explains {
    /// Does it.
    fn explain(&self, program: &Command, global: &Global) -> Result<(), Failure>;
}

/// A verb that runs a program to its end.
pub(crate) trait Runs {
    /// Does it, and returns the program's exit code.
    fn run(&self, global: &Global) -> Result<ExitCode, Failure>;
}

/// A verb that the daemon does.
pub(crate) trait Asks {
    /// Does it.
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure>;
}

impl Doing<'_> {
    /// Does what the command line says, which is defined by `definition`.
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
