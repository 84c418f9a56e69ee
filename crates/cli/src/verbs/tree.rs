//! `tree`: lists sessions below their parents.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::output::{Failure, say};
use clap::Args;
use pinfold_api::object::Session;
use pinfold_api::{endpoint, query};
use serde_json::{Value, json};

/// Which sessions.
#[derive(Debug, Args)]
pub(crate) struct Tree {
    /// Archived ones too
    #[arg(long)]
    all: bool,
}

impl Asks for Tree {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let json = daemon.global.json;
        let which =
            query::Sessions { all: self.all, known: true, brief: !json, ..query::Sessions::default() };
        let sessions = daemon.at_once(|client| client.ask(&endpoint::Sessions::call(&which)))?;
        let roots = sessions.iter().filter(|session| is_root(session, &sessions));
        if json {
            say(&Value::Array(roots.map(|root| branch(root, &sessions)).collect()));
        } else {
            roots.for_each(|root| print_branch(root, &sessions, 0));
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

fn print_branch(session: &Session, all: &[Session], depth: usize) {
    say(&format!("{}{} ({})", "  ".repeat(depth), session.name, session.state));
    for child in children(session, all) {
        print_branch(child, all, depth + 1);
    }
}
