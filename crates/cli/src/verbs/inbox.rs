//! `inbox`, `interrupt`, `answer`: what becomes of messages, and what a person does about it.

use super::sessions::{encode, path};
use super::{print, say, talk};
use crate::args::Global;
use crate::connect;
use crate::error::Failure;
use crate::paint::{Cell, Paper, Shade, plain, preview};
use clap::{Args, ValueEnum};
use pinfold_api::Client;
use pinfold_api::object::{Message, Sent, Session};
use serde_json::json;

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
    /// Only the last N
    #[arg(short = 'n', value_name = "N", conflicts_with_all = ["retry", "cancel"])]
    last: Option<u32>,
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
    if let Some(last) = inbox.last {
        address.push_str(&format!("&last={last}"));
    }
    let messages: Vec<Message> = client.get(&address)?;
    if global.json {
        say(&json!(messages));
        return Ok(());
    }
    if messages.is_empty() {
        if !global.quiet {
            talk(&format!("no messages; `pinfold send {} TEXT` sends one", inbox.session));
        }
        return Ok(());
    }
    let rows: Vec<[Cell<'_>; 6]> = messages.iter().map(row).collect();
    print(&Paper::stdout().table(["ID", "STATE", "TRIES", "SENT", "TEXT", "ANSWER"], &rows));
    Ok(())
}

fn row(message: &Message) -> [Cell<'_>; 6] {
    let shade = match message.state.as_str() {
        "done" => Shade::Good,
        "failed" => Shade::Bad,
        "delivered" => Shade::Busy,
        _ => Shade::Plain,
    };
    let answer = match (&message.answer, &message.failure) {
        (Some(answer), _) => preview(answer, 60),
        (None, Some(failure)) => failure.replace('_', " ").into(),
        (None, None) => "".into(),
    };
    [
        plain(message.id.as_str()),
        Cell { text: message.state.as_str().into(), shade },
        plain(message.tries.to_string()),
        plain(message.enqueued_at.get(..19).unwrap_or(&message.enqueued_at).replace('T', " ")),
        plain(preview(&message.text, 40)),
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
