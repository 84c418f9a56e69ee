//! `set`: changes a session's definition, effective with its next run.

use crate::daemon::Daemon;
use crate::definition::{self, DefinitionOptions};
use crate::doing::DaemonVerb;
use crate::output::{Failure, Kind, say, talk};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::object::Session;
use pinfold_api::request::NewSession;
use serde_json::{Value, json};

/// What changes.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name, or a unique beginning of its id
    session: String,
    #[command(flatten)]
    definition: DefinitionOptions,
    /// Begin a new conversation with the next run
    #[arg(long, conflicts_with = "vendor_session")]
    new_conversation: bool,
}

impl DaemonVerb for Set {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let request = definition::request(&self.session, &self.definition, &daemon.global)?;
        let new_conversation = self.new_conversation.then_some(true);
        let (caller_dir, caller_env, caller_umask) = (None, None, None);
        let mut request = NewSession { new_conversation, caller_dir, caller_env, caller_umask, ..request };
        definition::take_from_here(&mut request, &daemon.global);
        let changed = Changes::of(&request);
        if changed.is_empty() {
            let text = format!("no change is given for `{}`", self.session);
            return Err(
                Failure::new(Kind::Usage, text).hint("`pinfold help set` lists what can: --memory 2G")
            );
        }
        let client = daemon.client()?;
        let session = client.ask(&endpoint::Set::call(&self.session, &request))?;
        if daemon.global.json {
            say(&json!(session));
        } else if !daemon.global.quiet {
            talk(&format!("{}: {}", session.name, changed.told(&session)));
        }
        definition::warn_of_ceiling(&client, request.memory.as_deref(), &daemon.global)
    }
}

/// The options that take effect during a run.
const AT_ONCE: [&str; 4] = ["budget", "parent", "tags", "turn_time"];

/// What a request changes, in words; of variables only their names.
#[derive(Debug, PartialEq, Eq)]
struct Changes {
    /// In effect at once.
    now: Vec<String>,
    /// In effect with the next run.
    later: Vec<String>,
}

impl Changes {
    fn of(request: &NewSession) -> Changes {
        let all = json!(request);
        let fields = all.as_object().into_iter().flatten();
        let set =
            fields.filter(|(key, value)| !["name", "force"].contains(&key.as_str()) && !value.is_null());
        let (now, later): (Vec<_>, Vec<_>) = set.partition(|(key, _)| AT_ONCE.contains(&key.as_str()));
        let words = |(key, value): (&String, &Value)| {
            let key = key.replace('_', "-");
            if *value == Value::Bool(true) { key } else { format!("{key} {}", in_words(value)) }
        };
        Changes { now: now.into_iter().map(words).collect(), later: later.into_iter().map(words).collect() }
    }

    fn is_empty(&self) -> bool {
        self.now.is_empty() && self.later.is_empty()
    }

    /// When what takes effect.
    fn told(&self, session: &Session) -> String {
        let mut told = Vec::new();
        if !self.now.is_empty() {
            told.push(format!("{} from now on", self.now.join(", ")));
        }
        if !self.later.is_empty() {
            told.push(format!("{} from its next run on", self.later.join(", ")));
            if session.pid.is_some() {
                told.push(format!("`pinfold restart {}` starts that now", session.name));
            }
        }
        told.join("; ")
    }
}

fn in_words(value: &Value) -> String {
    let joined = |all: Vec<String>| if all.is_empty() { "none".to_owned() } else { all.join(" ") };
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(all) => joined(all.iter().map(in_words).collect()),
        Value::Object(all) => joined(all.keys().cloned().collect()),
        Value::Null | Value::Number(_) => value.to_string(),
    }
}
