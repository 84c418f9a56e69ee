//! `show`: tells everything about a session.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::output::{Failure, say};
use crate::worktree;
use clap::Args;
use pinfold_api::{ClientError, endpoint};
use serde_json::{Map, Value};
use std::path::Path;

/// What people look for first.
const FIRST: [&str; 8] = ["name", "id", "state", "why", "next", "pid", "command", "dir"];

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Its name, or a unique beginning of its id
    session: String,
}

impl Asks for Show {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        // Not as the object that this version knows: a newer daemon may tell more, and all of it is shown.
        let text = daemon.client()?.text(&endpoint::Show::call(&self.session))?;
        let mut object: Value = serde_json::from_slice(&text).map_err(ClientError::Garbled)?;
        if let Some(worktree) = object["dir"].as_str().and_then(|dir| worktree::shown(Path::new(dir))) {
            object["worktree"] = worktree;
        }
        match object.as_object().filter(|_| !daemon.global.json) {
            Some(fields) => tell(fields),
            None => say(&object),
        }
        Ok(())
    }
}

fn tell(fields: &Map<String, Value>) {
    let (first, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| FIRST.contains(&key.as_str()));
    let first = FIRST.iter().filter_map(|key| first.iter().find(|(own, _)| own.as_str() == *key));
    let all: Vec<_> = first.chain(&rest).filter_map(|(key, value)| Some((key, words_of(value)?))).collect();
    let width = all.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, text) in all {
        say(&format!("{key:<width$}  {text}"));
    }
}

/// A value for people; nothing when there is nothing to say.
fn words_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().filter_map(words_of).collect::<Vec<_>>().join(" "),
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(key, value)| Some(format!("{key} {}", words_of(value)?)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
    };
    Some(text).filter(|text| !text.is_empty())
}
