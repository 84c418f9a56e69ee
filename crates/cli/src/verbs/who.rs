//! `pinfold who`: everything that uses a directory.

use crate::args::Global;
use crate::error::Failure;
use crate::json;
use crate::places;
use pinfold_lock::{Relation, User, shorten};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(directory: &Path, global: &Global) -> Result<(), Failure> {
    // Only a directory can be asked about: that a name could be locked does not help.
    let users = places::user_folder(global)?.users_of(directory);
    let users = users.map_err(|error| Failure::from(error).without_hint())?;
    if global.json {
        super::say(&Value::Array(users.iter().map(object).collect()));
    } else {
        super::print_table(&["PID", "USES", "PLACE", "COMMAND"], &users.iter().map(row).collect::<Vec<_>>());
    }
    Ok(())
}

fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Same => "holds",
        Relation::Above => "holds_above",
        Relation::Below => "holds_below",
    }
}

fn object(user: &User) -> Value {
    match user {
        User::Holder { relation, lock } => json!({
            "how": word(*relation),
            "pid": lock.holder.identity.map(|identity| identity.pid),
            "command": lock.holder.command,
            "place": lock.resource,
            "lock": json::lock(lock),
        }),
        User::Worker { process, place } => json!({
            "how": "works",
            "pid": process.pid,
            "command": process.command,
            "place": place.to_string_lossy(),
            "lock": null,
        }),
    }
}

fn row(user: &User) -> Vec<String> {
    match user {
        User::Holder { relation, lock } => vec![
            lock.holder.identity.map_or("-".to_owned(), |identity| identity.pid.to_string()),
            word(*relation).replace('_', " "),
            lock.resource.clone(),
            shorten(&lock.holder.command),
        ],
        User::Worker { process, place } => vec![
            process.pid.to_string(),
            "works".to_owned(),
            place.display().to_string(),
            shorten(&process.command),
        ],
    }
}
