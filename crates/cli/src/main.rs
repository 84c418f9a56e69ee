//! The command `pinfold`.
#![deny(unsafe_code)]
// Everything printed goes through `output`, which makes it safe to display.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod attach;
mod audit;
mod check;
mod command_line;
mod commands;
mod daemon;
mod definition;
mod demo;
mod doing;
mod global;
mod help;
mod home;
mod inside;
mod leftovers;
mod live;
mod locked_command;
mod log_printer;
mod long_list;
mod looking;
mod lost_output;
mod mistakes;
mod output;
mod removal;
mod send_away;
mod service;
mod several;
mod signals;
mod since;
mod system_program;
mod tail;
mod told_exit;
mod tui;
mod umask;
mod verbs;
mod worktree;

use global::Global;
use output::{Failure, Kind, report};
use std::process::ExitCode;
use verbs::Verb;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == daemon::SHIM) {
        return pinfold_shim::process::main();
    }
    if pinfold_kernel::own::has_borrowed_rights() {
        let failure =
            Failure::new(Kind::NotPermitted, "pinfold runs commands, so it is never set-uid or set-gid")
                .hint("install it without these bits and without capabilities; sudo runs it as root");
        return report(&failure, &Global::default());
    }
    let done = command_line::parse().and_then(|command| {
        let Some(command) = command else { return written(None, &Global::default()) };
        let done = command.verb.doing().done(&command.global, command_line::definition);
        match done {
            Ok(ExitCode::SUCCESS) => written(Some(&command.verb), &command.global),
            done => done.map_err(|failure| (failure, command.global)),
        }
    });
    match done {
        Ok(code) => code,
        Err((failure, global)) => report(&umask::explained(failure), &global),
    }
}

/// Success, unless data did not reach stdout.
fn written(verb: Option<&Verb>, global: &Global) -> Result<ExitCode, (Failure, Global)> {
    match output::lost() {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err((lost_output::failure(verb, &error), global.clone())),
    }
}
