//! One file a verb.

mod agents;
mod backup;
mod daemon;
mod events;
mod inbox;
mod last;
mod left;
mod lock;
mod locks;
mod metrics;
mod new;
mod retire;
mod run;
mod send;
mod sessions;
mod several;
mod unlock;
mod watch;
mod who;

pub(crate) use crate::edge::{output, print, say, talk};
pub(crate) use daemon::Up;
pub(crate) use events::Events;
pub(crate) use inbox::{Inbox, Permission};
pub(crate) use new::{Defining, is_harmless};
pub(crate) use retire::{Purge, Restore};
pub(crate) use send::{Send, merged};
pub(crate) use sessions::{Listing, path as session_path};
pub(crate) use watch::Logs;

use crate::args::{Command, Global, Verb};
use crate::error::Failure;
use pinfold_core::visible::visible;
use serde_json::json;
use std::process::ExitCode;

/// Does what the command line says.
pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    let global = &command.global;
    // The verbs whose code is somebody else's.
    if let Verb::Lock(lock) = &command.verb {
        return lock::run(lock, global);
    }
    if let Verb::Run(defining) = &command.verb {
        return run::run(defining, global);
    }
    done(&command.verb, global).map(|()| ExitCode::SUCCESS)
}

fn done(verb: &Verb, global: &Global) -> Result<(), Failure> {
    match verb {
        Verb::Lock(_) | Verb::Run(_) => Ok(()),
        Verb::Up(up) => daemon::up(*up, global),
        Verb::Down { keep } => daemon::down(*keep, global),
        Verb::Demo => crate::demo::demo(global),
        Verb::Status => daemon::status(global),
        Verb::New(defining) => new::new(defining, global),
        Verb::Set(defining) => new::set(defining, global),
        Verb::Ls(listing) => sessions::ls(listing, global),
        Verb::Show { session } => sessions::show(session, global),
        Verb::Tree { all } => sessions::tree(*all, global),
        Verb::Why { session } => sessions::why(session, global),
        Verb::Attach(attach) => crate::attach::attach(attach, global),
        Verb::Logs(logs) => watch::logs(logs, global),
        Verb::Events(events) => events::events(events, global),
        Verb::Start { sessions } => sessions::each(sessions, "start", &json!({}), global),
        Verb::Stop { sessions, timeout } => {
            sessions::each(sessions, "stop", &json!({ "timeout": timeout }), global)
        }
        Verb::Restart { sessions } => sessions::each(sessions, "restart", &json!({}), global),
        Verb::Wait { session, states, timeout } => {
            sessions::wait(session, states, timeout.as_deref(), global)
        }
        Verb::Archive { sessions } => sessions::each(sessions, "archive", &json!({}), global),
        Verb::Restore(restore) => retire::restore(restore, global),
        Verb::Purge(purge) => retire::purge(purge, global),
        Verb::Rm { sessions, yes } => retire::rm(sessions, *yes, global),
        Verb::Send(send) => send::send(send, global),
        Verb::Inbox(inbox) => inbox::inbox(inbox, global),
        Verb::Interrupt { session } => inbox::interrupt(session, global),
        Verb::Answer { session, answer, id } => inbox::answer(session, *answer, id.as_deref(), global),
        Verb::Agents => agents::agents(global),
        Verb::Backup { file } => backup::backup(file, global),
        Verb::RestoreBackup { file } => backup::restore(file, global),
        Verb::Locks => locks::run(global),
        Verb::Metrics => metrics::run(global),
        Verb::Who { directory } => who::run(directory, global),
        Verb::Unlock { resource, kill } => unlock::run(resource, *kill, global),
    }
}

/// Prints rows with aligned columns; nothing when there are none.
fn print_table(heads: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let seen = |row: &Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect();
    let mut lines = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<String>>()];
    lines.extend(rows.iter().map(seen));
    let all = || lines.iter();
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut lines = String::new();
    for row in all() {
        let line: String = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}  ", width = *width))
            .collect();
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    print(&lines);
}
