//! `inbox`, `interrupt`, `answer`: what becomes of messages, and what a person does about it.

use super::last::{self, Last};
use super::sessions::{encode, path};
use super::{print, say, talk};
use crate::args::Global;
use crate::connect;
use crate::error::Failure;
use crate::paint::{Cell, Paper, Shade, plain, preview};
use clap::{Args, ValueEnum};
use pinfold_api::Client;
use pinfold_api::object::{Message, Sent, Session};
use pinfold_core::quoted::quoted;
use serde_json::json;

/// A person who asks for no number sees so many.
const SHOWN: u32 = 50;

/// Which messages, or what to do with one.
#[derive(Debug, Clone, Args)]
pub(crate) struct Inbox {
    /// The session
    session: String,
    /// Deliver a failed message again
    #[arg(long, value_name = "ID", conflicts_with = "cancel")]
    retry: Option<String>,
    /// Do not deliver a message that waits
    #[arg(long, value_name = "ID")]
    cancel: Option<String>,
    /// Only those in this state: queued, delivered, done, failed
    #[arg(long, value_name = "STATE", conflicts_with_all = ["retry", "cancel"])]
    state: Option<String>,
    /// Only the last N; `all` for all of them. On a terminal the last 50 unless it says so
    #[arg(short = 'n', value_name = "N|all", conflicts_with_all = ["retry", "cancel"])]
    last: Option<Last>,
}

pub(crate) fn inbox(inbox: &Inbox, global: &Global) -> Result<(), Failure> {
    let client = connect::client(global)?;
    match (&inbox.retry, &inbox.cancel) {
        (Some(id), _) => retry(&client, &inbox.session, id, global),
        (None, Some(id)) => cancel(&client, &inbox.session, id, global),
        (None, None) => list(&client, inbox, global),
    }
}

fn list(client: &Client, inbox: &Inbox, global: &Global) -> Result<(), Failure> {
    let mut address = format!("{}?", path(&inbox.session, "messages"));
    if let Some(state) = &inbox.state {
        address.push_str(&format!("&state={}", encode(state)));
    }
    address.push_str(&last::query(inbox.last, Last::Some(SHOWN), global));
    if global.json {
        return last::pass_on(client, &address);
    }
    let mut rows: Vec<[Cell<'static>; 6]> = Vec::new();
    let total = client.each(&address, |message: Message| rows.push(row(&message)))?;
    if rows.is_empty() && total.unwrap_or(0) == 0 {
        if !global.quiet {
            talk(&format!("no messages; `pinfold send {} TEXT` sends one", quoted(&inbox.session)));
        }
        return Ok(());
    }
    print(&Paper::stdout().table(["ID", "STATE", "TRIES", "SENT", "TEXT", "ANSWER"], &rows));
    last::say_how_many_more(total, rows.len() as u64, "messages", global);
    Ok(())
}

/// What is shown of a message; the rest of it is not kept.
fn row(message: &Message) -> [Cell<'static>; 6] {
    let shade = match message.state.as_str() {
        "done" => Shade::Good,
        "failed" => Shade::Bad,
        "delivered" => Shade::Busy,
        _ => Shade::Plain,
    };
    let answer = match (&message.answer, &message.failure) {
        (Some(answer), _) => preview(answer, 60).into_owned(),
        (None, Some(failure)) => failure.replace('_', " "),
        (None, None) => String::new(),
    };
    let text = match &message.from {
        Some(from) => format!("[from session {from}] {}", preview(&message.text, 40)),
        None => preview(&message.text, 40).into_owned(),
    };
    [
        plain(message.id.clone()),
        Cell { text: message.state.clone().into(), shade },
        plain(message.tries.to_string()),
        plain(message.enqueued_at.get(..19).unwrap_or(&message.enqueued_at).replace('T', " ")),
        plain(text),
        plain(answer),
    ]
}

fn retry(client: &Client, session: &str, id: &str, global: &Global) -> Result<(), Failure> {
    let sent: Sent = client.post(&path(session, &format!("messages/{}/retry", encode(id))), &json!({}))?;
    if global.json {
        say(&json!(sent));
    } else if !global.quiet {
        talk(&format!("message {} is {}", sent.message.id, sent.message.state));
    }
    if let Some(note) = sent.note.filter(|_| !global.quiet) {
        talk(&note);
    }
    Ok(())
}

fn cancel(client: &Client, session: &str, id: &str, global: &Global) -> Result<(), Failure> {
    let message: Message =
        client.post(&path(session, &format!("messages/{}/cancel", encode(id))), &json!({}))?;
    if global.json {
        say(&json!(message));
    } else if !global.quiet {
        talk(&format!("message {} is cancelled", message.id));
    }
    Ok(())
}

pub(crate) fn interrupt(session: &str, global: &Global) -> Result<(), Failure> {
    let object: Session = connect::client(global)?.post(&path(session, "interrupt"), &json!({}))?;
    if global.json {
        say(&json!(object));
    } else if !global.quiet {
        talk(&format!("the turn of {} was asked to end", object.name));
    }
    Ok(())
}

/// The answer to a permission request.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Permission {
    Allow,
    Deny,
}

pub(crate) fn answer(
    session: &str,
    permission: Permission,
    id: Option<&str>,
    global: &Global,
) -> Result<(), Failure> {
    let word = match permission {
        Permission::Allow => "allow",
        Permission::Deny => "deny",
    };
    let body = json!({ "answer": word, "id": id });
    let object: Session = connect::client(global)?.post(&path(session, "answer"), &body)?;
    if global.json {
        say(&json!(object));
    }
    Ok(())
}
