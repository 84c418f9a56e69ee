//! `who`: lists everything that uses a directory. Needs no daemon.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, Paper, TableCell, Worth, plain, print, say, talk};
use clap::{Args, ValueHint};
use pinfold_daemon::objects;
use pinfold_kernel::proc;
use pinfold_lock::{DirectoryRelation, DirectoryUser};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which directory.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// The directory
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
}

impl StandaloneVerb for Who {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        // Only directories are accepted here, so the hint about lock names would not help.
        let users = home::user_folder(global)?.users_of(&self.directory);
        let users = users.map_err(|error| Failure::from(error).without_hint())?;
        let works = |user: &DirectoryUser| matches!(user, DirectoryUser::Worker { .. });
        let runs = if users.iter().any(works) { Runs::of(global)? } else { Runs::default() };
        if global.json {
            say(&Value::Array(users.iter().map(|user| object(user, &runs)).collect()));
        } else if !users.is_empty() {
            let rows: Vec<_> = users.iter().map(|user| row(user, &runs)).collect();
            print(&Paper::stdout().fitted(HEADS, &rows));
        } else if !global.quiet {
            talk(&format!("no process that you may look at uses {}", self.directory.display()));
        }
        Ok(())
    }
}

/// The sessions that hold a lock now, by the process that holds it.
#[derive(Default)]
struct Runs(BTreeMap<u32, String>);

impl Runs {
    fn of(global: &Global) -> Result<Runs, Failure> {
        let mut runs = BTreeMap::new();
        for folder in home::existing_folders(global)? {
            let locks = folder.locks().map_err(|errno| Failure::from_error(Kind::Failed, &errno))?;
            let held = locks.into_iter().filter_map(|lock| Some((lock.holder.identity?.pid, lock.session?)));
            runs.extend(held);
        }
        // A process that left its parents is a child of the shim.
        let shims = runs.iter().filter_map(|(pid, session)| Some((shim_above(*pid)?, session.clone())));
        let shims: Vec<_> = shims.collect();
        runs.extend(shims);
        Ok(Runs(runs))
    }

    /// The session whose run this process is part of: the processes above it are the kernel's word.
    fn session(&self, pid: u32) -> Option<&str> {
        proc::tree::lineage(pid).find_map(|above| self.0.get(&above)).map(String::as_str)
    }

    fn session_of<'a>(&'a self, user: &'a DirectoryUser) -> Option<&'a str> {
        match user {
            DirectoryUser::Holder { lock, .. } => lock.session.as_deref(),
            DirectoryUser::Worker { process, .. } => self.session(process.pid),
        }
    }
}

/// The shim that keeps an agent, if its parent is one.
fn shim_above(agent: u32) -> Option<u32> {
    let parent = proc::stat::parent(agent)?;
    proc::name(parent)?.starts_with("pinfold").then_some(parent)
}

fn word(relation: DirectoryRelation) -> &'static str {
    match relation {
        DirectoryRelation::Same => "holds",
        DirectoryRelation::Above => "holds_above",
        DirectoryRelation::Below => "holds_below",
    }
}

fn object(user: &DirectoryUser, runs: &Runs) -> Value {
    let session = runs.session_of(user);
    match user {
        DirectoryUser::Holder { relation, lock } => json!({
            "how": word(*relation),
            "session": session,
            "pid": lock.holder.identity.map(|identity| identity.pid),
            "command": lock.holder.command,
            "place": lock.resource,
            "lock": objects::lock(lock),
        }),
        DirectoryUser::Worker { process, place } => json!({
            "how": "works",
            "session": session,
            "pid": process.pid,
            "command": process.command,
            "place": place.to_string_lossy(),
            "lock": null,
        }),
    }
}

const HEADS: [(&str, Worth); 5] = [
    ("PID", Worth::Needed(7)),
    ("SESSION", Worth::Wanted(3)),
    ("USES", Worth::Needed(5)),
    ("PLACE", Worth::Path(2)),
    ("COMMAND", Worth::Sentence),
];

fn row(user: &DirectoryUser, runs: &Runs) -> [TableCell<'static>; 5] {
    let session = runs.session_of(user).unwrap_or("-").to_owned();
    let cells = match user {
        DirectoryUser::Holder { relation, lock } => [
            lock.holder.identity.map_or("-".to_owned(), |identity| identity.pid.to_string()),
            session,
            word(*relation).replace('_', " "),
            lock.resource.clone(),
            lock.holder.command.clone(),
        ],
        DirectoryUser::Worker { process, place } => [
            process.pid.to_string(),
            session,
            "works".to_owned(),
            place.display().to_string(),
            process.command.clone(),
        ],
    };
    cells.map(plain)
}
