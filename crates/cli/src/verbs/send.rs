//! `send`: queues a message, and waits for its answer where that is wanted.

use super::sessions::path;
use super::{output, say, talk};
use crate::args::Global;
use crate::connect;
use crate::edge::Words;
use crate::error::{Failure, Kind};
use clap::Args;
use pinfold_api::object::{Message, Sent};
use pinfold_api::request::NewMessage;
use pinfold_api::{ClientError, ErrorKind, units};
use pinfold_core::quoted::quoted;
use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};

/// No message is longer; what is read beyond it only serves to say so.
const LONGEST: u64 = 1 << 20;

/// What to send.
#[derive(Debug, Clone, Args)]
pub(crate) struct Send {
    /// The session
    session: String,
    /// What to say; `-` reads it from standard input, and `--` before it lets it begin with anything
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The same key twice is one message
    #[arg(long, value_name = "K")]
    key: Option<String>,
    /// Wait for the answer and print it, at most so long (124)
    #[arg(long, value_name = "DUR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not given, given alone, given with a time")]
    wait: Option<Option<String>>,
}

pub(crate) fn send(send: &Send, global: &Global) -> Result<(), Failure> {
    let patience = patience(send)?;
    let text = if send.text == "-" { from_stdin()? } else { send.text.clone() };
    let request = NewMessage { text, key: send.key.clone() };
    let sent: Sent = connect::client(global)?.post(&path(&send.session, "messages"), &request)?;
    if let Some(note) = sent.note.as_ref().filter(|_| !global.quiet) {
        talk(note);
    }
    let Some(patience) = patience else {
        if global.json {
            say(&json!(sent));
        } else {
            say(&sent.message.id);
        }
        return Ok(());
    };
    answered(sent.message, patience, global)
}

fn patience(send: &Send) -> Result<Option<Duration>, Failure> {
    let Some(given) = &send.wait else { return Ok(None) };
    let Some(text) = given else { return Ok(Some(Duration::MAX)) };
    let time = units::duration(text).map_err(|error| {
        let hint = "pinfold send SESSION TEXT --wait 30s: what stands behind --wait is a time";
        Failure::new(Kind::Usage, error.to_string()).hint(hint)
    });
    time.map(Some)
}

fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    String::from_utf8(bytes).map_err(|_| Failure::new(Kind::Usage, "standard input is not UTF-8"))
}

/// Waits until the message is done or has failed, over the end of any daemon.
fn answered(sent: Message, patience: Duration, global: &Global) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let left = patience.saturating_sub(begun.elapsed());
        match wait(&sent, left, global) {
            Ok(message) => return told(&message, global),
            // The message is durable: whichever daemon comes next has it.
            Err(ClientError::Broken(_) | ClientError::Down { .. }) if !left.is_zero() => {}
            Err(ClientError::Refused(body)) if body.kind == ErrorKind::Unavailable && !left.is_zero() => {}
            Err(ClientError::Refused(body)) if body.kind == ErrorKind::Timeout => {
                return Err(Failure::from(*body).with(json!(latest(&sent, global).unwrap_or(sent))));
            }
            // No answer can come: what became of the message is shown beside the reason.
            Err(ClientError::Refused(body)) => {
                return Err(Failure::from(*body).with(json!(latest(&sent, global).unwrap_or(sent))));
            }
            Err(error) => return Err(error.into()),
        }
        connect::client(global)?;
    }
}

fn wait(sent: &Message, left: Duration, global: &Global) -> Result<Message, ClientError> {
    let mut address = message_path(sent);
    // What cannot be told as a number of milliseconds is for ever.
    match u64::try_from(left.as_millis()) {
        Ok(left) => address.push_str(&format!("?wait={left}ms")),
        Err(_) => address.push_str("?wait="),
    }
    let home = connect::home(global).map_err(|_| ClientError::Broken(std::io::ErrorKind::NotFound.into()))?;
    connect::at(&home).get(&address)
}

fn latest(sent: &Message, global: &Global) -> Option<Message> {
    connect::running(global).ok()?.get(&message_path(sent)).ok()
}

fn message_path(message: &Message) -> String {
    path(&message.session, &format!("messages/{}", message.id))
}

fn told(message: &Message, global: &Global) -> Result<(), Failure> {
    if message.state != "done" {
        let why = message.failure.as_deref().unwrap_or("unknown").replace('_', " ");
        let failure = Failure::new(Kind::Failed, format!("message {} has failed: {why}", message.id));
        let hint =
            format!("`pinfold inbox {} --retry {}` tries it again", quoted(&message.session), message.id);
        return Err(failure.hint(hint).with(json!(message)));
    }
    if message.answer.is_none() && !global.quiet {
        let name = &message.session;
        talk(&format!("message {} was delivered; `{name}` gives no answers (`--turns line`)", message.id));
    }
    if global.json {
        say(&json!(message));
    } else if let Some(answer) = &message.answer {
        output(answer, Words::for_stdout());
    }
    Ok(())
}

/// Whatever a verb has to show beside its failure.
pub(crate) fn merged(error: Value, beside: Option<&Value>) -> Value {
    let mut object = beside.cloned().unwrap_or_else(|| json!({}));
    object["error"] = error;
    object
}
