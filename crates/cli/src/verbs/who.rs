//! `who`: lists everything that uses a directory. Needs no daemon.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Paper, TableCell, Worth, plain, print, say, talk};
use clap::{Args, ValueHint};
use pinfold_daemon::objects;
use pinfold_lock::{DirectoryRelation, DirectoryUser};
use serde_json::{Value, json};
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
        if global.json {
            say(&Value::Array(users.iter().map(object).collect()));
        } else if !users.is_empty() {
            let rows: Vec<_> = users.iter().map(row).collect();
            print(&Paper::stdout().fitted(HEADS, &rows));
        } else if !global.quiet {
            talk(&format!("no process that you may look at uses {}", self.directory.display()));
        }
        Ok(())
    }
}

fn word(relation: DirectoryRelation) -> &'static str {
    match relation {
        DirectoryRelation::Same => "holds",
        DirectoryRelation::Above => "holds_above",
        DirectoryRelation::Below => "holds_below",
    }
}

fn object(user: &DirectoryUser) -> Value {
    match user {
        DirectoryUser::Holder { relation, lock } => json!({
            "how": word(*relation),
            "pid": lock.holder.identity.map(|identity| identity.pid),
            "command": lock.holder.command,
            "place": lock.resource,
            "lock": objects::lock(lock),
        }),
        DirectoryUser::Worker { process, place } => json!({
            "how": "works",
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

fn row(user: &DirectoryUser) -> [TableCell<'static>; 5] {
    let cells = match user {
        DirectoryUser::Holder { relation, lock } => [
            lock.holder.identity.map_or("-".to_owned(), |identity| identity.pid.to_string()),
            lock.session.clone().unwrap_or_else(|| "-".to_owned()),
            word(*relation).replace('_', " "),
            lock.resource.clone(),
            lock.holder.command.clone(),
        ],
        DirectoryUser::Worker { process, place } => [
            process.pid.to_string(),
            "-".to_owned(),
            "works".to_owned(),
            place.display().to_string(),
            process.command.clone(),
        ],
    };
    cells.map(plain)
}
