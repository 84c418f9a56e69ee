//! One file a verb.

mod lock;
mod locks;
mod unlock;
mod who;

use crate::args::{Command, Verb};
use crate::error::Failure;
use std::process::ExitCode;

/// Does what the command line says.
pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    let global = &command.global;
    match &command.verb {
        Verb::Lock(lock) => lock::run(lock, global),
        Verb::Locks => locks::run(global).map(|()| ExitCode::SUCCESS),
        Verb::Who { directory } => who::run(directory, global).map(|()| ExitCode::SUCCESS),
        Verb::Unlock { resource, kill } => unlock::run(resource, *kill, global).map(|()| ExitCode::SUCCESS),
    }
}

/// Prints one line of data. A reader that has gone away is no failure of ours.
pub(crate) fn say(line: &impl std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints rows with aligned columns; nothing when there are none.
fn print_table(heads: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let all = || std::iter::once(&heads).chain(rows);
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in all() {
        let line: String = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}  ", width = *width))
            .collect();
        say(&line.trim_end());
    }
}
