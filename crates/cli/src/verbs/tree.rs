//! `tree`: lists sessions below their parents.

use super::ls::shade_of;
use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Paper, print, say, talk};
use clap::Args;
use pinfold_api::object::Session;
use pinfold_api::{endpoint, query};
use pinfold_core::visible::visible;
use serde_json::{Value, json};

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct Tree {
    /// Show archived ones too
    #[arg(short, long)]
    all: bool,
}

impl DaemonVerb for Tree {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let json = daemon.global.json;
        let which =
            query::Sessions { all: self.all, known: true, brief: !json, ..query::Sessions::default() };
        let sessions = daemon.at_once(|client| client.ask(&endpoint::Sessions::call(&which)))?;
        let roots = sessions.iter().filter(|session| is_root(session, &sessions));
        if json {
            say(&Value::Array(roots.map(|root| branch(root, &sessions)).collect()));
        } else if sessions.is_empty() && !daemon.global.quiet {
            talk(&"no sessions; `pinfold new NAME -- COMMAND` makes one");
        } else {
            roots.for_each(|root| print_branch(root, &sessions, ""));
        }
        Ok(())
    }
}

fn is_root(session: &Session, all: &[Session]) -> bool {
    session.parent_id.as_ref().is_none_or(|parent| !all.iter().any(|other| other.id == *parent))
}

fn children<'a>(of: &'a Session, all: &'a [Session]) -> impl Iterator<Item = &'a Session> {
    all.iter().filter(|other| other.parent_id.as_ref() == Some(&of.id))
}

fn branch(session: &Session, all: &[Session]) -> Value {
    let below: Vec<Value> = children(session, all).map(|child| branch(child, all)).collect();
    json!({ "session": session, "children": below })
}

/// Prints a session on one line, with its children below; `before` is the prefix of those lines.
fn print_branch(session: &Session, all: &[Session], before: &str) {
    let state = Paper::stdout().paint(session.state.word(), shade_of(&session.state)).into_owned();
    print(&format!("{} {state}\n", visible(&session.name)));
    let below: Vec<&Session> = children(session, all).collect();
    for (at, child) in below.iter().enumerate() {
        let (line, next) = if at + 1 == below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        print(&format!("{before}{line}"));
        print_branch(child, all, &format!("{before}{next}"));
    }
}
