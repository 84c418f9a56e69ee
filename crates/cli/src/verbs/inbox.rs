//! `inbox`: lists a session's messages, retries one, or cancels one.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::global::Global;
use crate::long_list::{self, LastEntries};
use crate::looking::looked;
use crate::output::{Failure, Paper, Shade, TableCell, Worth, ago, moment, plain, preview, print, say, talk};
use clap::Args;
use pinfold_api::object::Message;
use pinfold_api::word::MessageState;
use pinfold_api::{Client, endpoint, query};
use pinfold_core::quoted::quoted;
use serde_json::json;

/// How many messages a person sees without asking for a number.
const SHOWN: u32 = 50;

/// Which messages, or what to do with one.
#[derive(Debug, Clone, Args)]
pub(crate) struct Inbox {
    /// Its name, or a unique beginning of its id
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
    /// Only the last N, or `all` [default: 50 on a terminal, otherwise all]
    #[arg(short = 'n', value_name = "N|all", conflicts_with_all = ["retry", "cancel"])]
    last: Option<LastEntries>,
}

impl DaemonVerb for Inbox {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let (client, global) = (daemon.client()?, &daemon.global);
        match (&self.retry, &self.cancel) {
            (Some(id), _) => retry(&client, &self.session, id, global),
            (None, Some(id)) => cancel(&client, &self.session, id, global),
            (None, None) => list(&client, self, global).inspect(|()| looked(&client, &self.session)),
        }
    }
}

fn list(client: &Client, inbox: &Inbox, global: &Global) -> Result<(), Failure> {
    let last = long_list::last(inbox.last, LastEntries::Some(SHOWN), global);
    let which = query::Messages { state: inbox.state.clone(), last, ..query::Messages::default() };
    let call = endpoint::Messages::call(&inbox.session, &which);
    if global.json {
        return long_list::pass_on(client, &call).map(drop);
    }
    let mut rows: Vec<[TableCell<'static>; 6]> = Vec::new();
    let people = Paper::stdout().width().is_some();
    let rest = client.each(&call, |message: Message| rows.push(row(&message, people)))?;
    if rows.is_empty() && rest.total.unwrap_or(0) == 0 {
        if !global.quiet {
            talk(&format!("no messages; `pinfold send {} TEXT` sends one", quoted(&inbox.session)));
        }
        return Ok(());
    }
    print(&Paper::stdout().fitted(HEADS, &rows));
    long_list::say_how_many_more(&rest, rows.len() as u64, "messages", global);
    Ok(())
}

const HEADS: [(&str, Worth); 6] = [
    ("ID", Worth::Needed(26)),
    ("STATE", Worth::Needed(9)),
    ("TRIES", Worth::Extra),
    ("SENT", Worth::Wanted(2)),
    ("TEXT", Worth::Wanted(3)),
    ("ANSWER", Worth::Sentence),
];

/// A row for a message. Texts are shortened for people only.
fn row(message: &Message, people: bool) -> [TableCell<'static>; 6] {
    let preview =
        |text: &str, most: usize| preview(text, if people { most } else { usize::MAX }).into_owned();
    let shade = match message.state {
        MessageState::Done => Shade::Good,
        MessageState::Failed => Shade::Bad,
        MessageState::Delivered => Shade::Busy,
        MessageState::Queued | MessageState::Damaged | MessageState::Other(_) => Shade::Plain,
    };
    let answer = match (&message.answer, &message.failure) {
        (Some(answer), _) => preview(answer, 200),
        (None, Some(failure)) => {
            let word = failure.replace('_', " ");
            let reason = message.reason.as_ref().map(|reason| format!("{word}: {}", preview(reason, 80)));
            reason.unwrap_or(word)
        }
        (None, None) => String::new(),
    };
    let text = match &message.from {
        Some(from) => format!("[from session {from}] {}", preview(&message.text, 40)),
        None => preview(&message.text, 40),
    };
    [
        plain(message.id.clone()),
        TableCell { text: message.state.to_string().into(), shade },
        plain(message.tries.to_string()),
        plain(sent(&message.enqueued_at, people)),
        plain(text),
        plain(answer),
    ]
}

/// When a message was sent: how long ago for people, else the time, since the output may be read later.
fn sent(at: &str, people: bool) -> String {
    ago(at).filter(|_| people).map_or_else(|| moment(at), |ago| format!("{ago} ago"))
}

fn retry(client: &Client, session: &str, id: &str, global: &Global) -> Result<(), Failure> {
    let sent = client.ask(&endpoint::RetryMessage::call(session, id))?;
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
    let message = client.ask(&endpoint::CancelMessage::call(session, id))?;
    if global.json {
        say(&json!(message));
    } else if !global.quiet {
        talk(&format!("message {} is cancelled", message.id));
    }
    Ok(())
}
