//! `ls`, `show`, `tree`, `why`, and what people ask of sessions.

use super::several::{self, Done};
use super::{print, say, talk};
use crate::args::Global;
use crate::connect;
use crate::error::Failure;
use crate::paint::{Cell, Paper, Shade, plain, preview, shade_of};
use clap::Args;
use pinfold_api::ClientError;
use pinfold_api::object::{LastExit, Row, Session};
use pinfold_core::{Exit, words};
use serde_json::{Value, json};
use std::time::Duration;

/// Which sessions `ls` shows.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Listing {
    /// Archived ones too
    #[arg(long)]
    pub(crate) all: bool,
    /// Only those in this state
    #[arg(long, value_name = "S")]
    pub(crate) state: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "T")]
    pub(crate) tag: Option<String>,
}

/// The address of a session, or of something it can do.
pub(crate) fn path(session: &str, what: &str) -> String {
    let session = encode(session);
    if what.is_empty() { format!("/v1/sessions/{session}") } else { format!("/v1/sessions/{session}/{what}") }
}

/// Percent-encodes what may not stand in a path or a query.
pub(crate) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn query(address: &str, listing: &Listing) -> String {
    let mut query = format!("{address}?all={}", listing.all);
    for (key, value) in [("state", &listing.state), ("tag", &listing.tag)] {
        if let Some(value) = value {
            query.push_str(&format!("&{key}={}", encode(value)));
        }
    }
    query
}

pub(crate) fn ls(listing: &Listing, global: &Global) -> Result<(), Failure> {
    if global.json {
        // The daemon's own words: they would only be read to be written again.
        let text = connect::at_once(global, |client| client.text(&query("/v1/sessions", listing)))?;
        say(&String::from_utf8_lossy(&text));
        return Ok(());
    }
    let text = connect::at_once(global, |client| client.text(&query("/v1/table", listing)))?;
    let rows: Vec<Row<'_>> = serde_json::from_slice(&text).map_err(ClientError::Garbled)?;
    if rows.is_empty() {
        if !global.quiet {
            match (&listing.state, &listing.tag) {
                (None, None) => talk(&"no sessions; `pinfold new NAME -- COMMAND` makes one"),
                (Some(_), _) | (_, Some(_)) => talk(&"no such sessions"),
            }
        }
        return Ok(());
    }
    let rows: Vec<[Cell<'_>; 7]> = rows.into_iter().map(cells).collect();
    let heads = ["NAME", "STATE", "MODE", "PID", "RESTARTS", "COMMAND", "WHY"];
    print(&Paper::stdout().table(heads, &rows));
    Ok(())
}

fn cells(row: Row<'_>) -> [Cell<'_>; 7] {
    let shade = shade_of(&row.state);
    [
        plain(row.name),
        Cell { text: row.state, shade },
        plain(row.mode),
        plain(row.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string())),
        plain(row.restarts.to_string()),
        Cell { text: preview(&row.command, 24).into_owned().into(), shade: Shade::Faint },
        plain(row.why),
    ]
}

pub(crate) fn show(session: &str, global: &Global) -> Result<(), Failure> {
    let object: Value = connect::client(global)?.get(&path(session, ""))?;
    if global.json {
        say(&object);
        return Ok(());
    }
    let Value::Object(fields) = &object else { return Ok(()) };
    let (first, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| FIRST.contains(&key.as_str()));
    let first = FIRST.iter().filter_map(|key| first.iter().find(|(own, _)| own.as_str() == *key));
    let all: Vec<_> = first.chain(&rest).filter_map(|(key, value)| Some((key, words_of(value)?))).collect();
    let width = all.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, text) in all {
        say(&format!("{key:<width$}  {text}"));
    }
    Ok(())
}

/// What people look for first.
const FIRST: [&str; 8] = ["name", "id", "state", "why", "next", "pid", "command", "dir"];

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

pub(crate) fn why(session: &str, global: &Global) -> Result<(), Failure> {
    let object: Session = connect::client(global)?.get(&path(session, ""))?;
    if global.json {
        let Session { name, state, why, next, holder, last_exit, .. } = object;
        say(&json!({
            "name": name,
            "state": state,
            "why": why,
            "next": next,
            "holder": holder,
            "last_exit": last_exit,
        }));
    } else {
        say(&format!("{} is {}.", object.name, object.why));
    }
    Ok(())
}

pub(crate) fn tree(all: bool, global: &Global) -> Result<(), Failure> {
    let address = format!("/v1/sessions?all={all}&known=true&brief={}", !global.json);
    let sessions: Vec<Session> = connect::at_once(global, |client| client.get(&address))?;
    if global.json {
        let roots: Vec<&Session> = sessions.iter().filter(|session| is_root(session, &sessions)).collect();
        say(&Value::Array(roots.iter().map(|root| branch(root, &sessions)).collect()));
        return Ok(());
    }
    for root in sessions.iter().filter(|session| is_root(session, &sessions)) {
        print_branch(root, &sessions, 0);
    }
    Ok(())
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

/// Asks the same of several sessions.
pub(crate) fn each(sessions: &[String], what: &str, body: &Value, global: &Global) -> Result<(), Failure> {
    several::each(sessions, global, |client, session| {
        let session: Session = client.post(&path(session, what), body)?;
        Ok(Done { words: format!("{} is {}", session.name, session.why), object: json!(session) })
    })
}

pub(crate) fn wait(
    session: &str,
    states: &str,
    timeout: Option<&str>,
    global: &Global,
) -> Result<(), Failure> {
    let mut address = format!("{}?for={}", path(session, "wait"), encode(states));
    if let Some(timeout) = timeout {
        address.push_str(&format!("&timeout={}", encode(timeout)));
    }
    let object: Session = connect::client(global)?.get(&address)?;
    if let Some(how) = how_it_came(&object).filter(|_| !global.quiet) {
        talk(&how);
    }
    if global.json {
        say(&json!(object));
    }
    Ok(())
}

/// What brought a session into its state, where that was the end of a run or a start that failed.
fn how_it_came(session: &Session) -> Option<String> {
    match (session.state.as_str(), &session.last_exit) {
        ("failed" | "backoff", _) => Some(format!("{} is {}", session.name, session.why)),
        ("stopped" | "idle", Some(exit)) => Some(format!("{} {}", session.name, told(exit))),
        _ => None,
    }
}

fn told(exit: &LastExit) -> String {
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::ShimLost,
    };
    let after = words::duration(Duration::from_millis(exit.uptime_ms));
    let line = exit.last_line.as_ref().map(|line| format!(": `{line}`")).unwrap_or_default();
    format!("{how} after {after}{line}")
}
