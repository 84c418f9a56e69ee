//! `set`: changes a session's definition, effective with its next run.

use crate::daemon::Daemon;
use crate::definition::{self, DefinitionOptions};
use crate::doing::DaemonVerb;
use crate::output::{Failure, Kind, say, talk};
use clap::Args;
use pinfold_api::endpoint;
use pinfold_api::request::NewSession;
use serde_json::{Value, json};

/// What changes.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name, or a unique beginning of its id
    session: String,
    #[command(flatten)]
    definition: DefinitionOptions,
}

impl DaemonVerb for Set {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let request = definition::request(&self.session, &self.definition, &daemon.global)?;
        let request = NewSession { caller_dir: None, caller_env: None, caller_umask: None, ..request };
        let changed = changed(&request);
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
            let lives = session.pid.is_some();
            let now = if lives {
                format!("; `pinfold restart {}` starts that now", session.name)
            } else {
                String::new()
            };
            talk(&format!("{}: {} from its next run on{now}", session.name, changed.join(", ")));
        }
        definition::warn_of_ceiling(&client, request.memory.as_deref(), &daemon.global)
    }
}

/// What a request changes, by field name; of variables only their names.
fn changed(request: &NewSession) -> Vec<String> {
    let all = json!(request);
    let fields = all.as_object().into_iter().flatten();
    let said = fields.filter(|(key, value)| *key != "name" && !value.is_null());
    said.map(|(key, value)| format!("{} {}", key.replace('_', "-"), in_words(value))).collect()
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
