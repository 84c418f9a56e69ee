//! Runs each request in its own thread: the loop never waits for the daemon.

use super::super::effect::{UiInput, UiReply, UiRequest};
use super::super::model::SessionDetails;
use super::news::Teller;
use crate::definition;
use crate::global::Global;
use crate::looking::looked;
use pinfold_api::endpoint;
use pinfold_api::object::{LogLine, Session};
use pinfold_api::request::{NewMessage, NewSession, Purge, Stop};
use pinfold_api::{Client, ClientError, query};
use std::convert::Infallible;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How many messages, events and lines of output are read for the details.
const MESSAGES: u32 = 4;
const EVENTS: u32 = 60;
const LINES: usize = 30;
/// How many search hits to ask for: more than fit on a screen.
const HITS: usize = 200;
/// How many directories are offered.
const CANDIDATES: usize = 50;

/// How long quitting waits for requests under way, so that a message just sent is sent; a mute daemon is not
/// waited for any longer.
const LAST_ACTS: Duration = Duration::from_secs(2);

/// The requests under way.
pub(super) struct RequestsUnderWay {
    /// Each request that changes something has a copy until it is done.
    acting: Sender<Infallible>,
    acted: Receiver<Infallible>,
}

impl RequestsUnderWay {
    pub(super) fn new() -> RequestsUnderWay {
        let (acting, acted) = channel();
        RequestsUnderWay { acting, acted }
    }

    /// Asks, and sends the loop its result.
    pub(super) fn begin(&self, client: Client, global: Global, request: UiRequest, teller: Teller) {
        let acting = request.changes_something().then(|| self.acting.clone());
        std::thread::spawn(move || {
            let answer = answer(&client, &global, request);
            drop(acting);
            _ = teller.tell(UiInput::Answered(answer));
        });
    }

    /// Waits until what was to be done is done, for a while.
    pub(super) fn finish(self) {
        drop(self.acting);
        _ = self.acted.recv_timeout(LAST_ACTS);
    }
}

/// The result of a request.
pub(super) fn answer(client: &Client, global: &Global, request: UiRequest) -> UiReply {
    match request {
        UiRequest::Detail { id } => {
            let gathered = gathered(client, &id).map(Box::new).map_err(|error| said(&error));
            UiReply::Detail { id, gathered }
        }
        UiRequest::Look { id } => {
            looked(client, &id);
            UiReply::Nothing
        }
        UiRequest::Search { text } => {
            let which = query::Search { text: text.clone(), limit: Some(HITS), session: None };
            let hits = client.ask(&endpoint::Search::call(&which)).map_err(|error| said(&error));
            UiReply::Found { text, hits }
        }
        UiRequest::Send { id, name, text } => send(client, id, &name, text),
        UiRequest::New(request) => UiReply::Made(made(client, global, *request)),
        UiRequest::Purge { dry } => {
            let wish = Purge { dry_run: dry, ..Purge::default() };
            UiReply::Purged {
                dry,
                purged: client.ask(&endpoint::Purge::call(&wish)).map_err(|error| said(&error)),
            }
        }
        UiRequest::Locks => {
            let locks = client.ask(&endpoint::Locks::call(&query::Locks::default()));
            UiReply::Locks(locks.map_err(|error| said(&error)))
        }
        UiRequest::Complete { path } => UiReply::Completed { found: completed(&path), path },
        UiRequest::Archive { id, name } => match client.ask(&endpoint::Archive::call(&id)) {
            Ok(_) => UiReply::Archived { id, name },
            Err(error) => UiReply::Failed(said(&error)),
        },
        UiRequest::Answer { .. }
        | UiRequest::Interrupt { .. }
        | UiRequest::Start { .. }
        | UiRequest::Stop { .. }
        | UiRequest::Restart { .. }
        | UiRequest::Restore { .. }
        | UiRequest::Tags { .. } => steered(client, request),
    }
}

/// Carries out a request that steers a session; the answer says what became of it.
fn steered(client: &Client, request: UiRequest) -> UiReply {
    let (done, name, what) = match request {
        UiRequest::Answer { id, name, permission } => {
            (client.ask(&endpoint::AnswerPermission::call(&id, &permission)), name, "answered")
        }
        UiRequest::Interrupt { id, name } => {
            (client.ask(&endpoint::Interrupt::call(&id)), name, "interrupted")
        }
        UiRequest::Start { id, name } => (client.ask(&endpoint::Start::call(&id)), name, "started"),
        UiRequest::Stop { id, name } => {
            (client.ask(&endpoint::Stop::call(&id, &Stop::default())), name, "stopped")
        }
        UiRequest::Restart { id, name } => (client.ask(&endpoint::Restart::call(&id)), name, "restarted"),
        UiRequest::Restore { id, name } => (client.ask(&endpoint::Restore::call(&id)), name, "brought back"),
        UiRequest::Tags { id, name, tags } => {
            let change = NewSession { tags: Some(tags), ..NewSession::default() };
            (client.ask(&endpoint::Set::call(&id, &change)), name, "tagged")
        }
        UiRequest::Detail { .. }
        | UiRequest::Look { .. }
        | UiRequest::Search { .. }
        | UiRequest::Send { .. }
        | UiRequest::New(_)
        | UiRequest::Purge { .. }
        | UiRequest::Locks
        | UiRequest::Complete { .. }
        | UiRequest::Archive { .. } => return UiReply::Done(String::new()),
    };
    match done {
        Ok(_) => UiReply::Done(format!("{what} `{name}`")),
        Err(error) => UiReply::Failed(said(&error)),
    }
}

/// The error message with its hint.
fn said(error: &ClientError) -> String {
    match error {
        ClientError::Refused(body) => match &body.hint {
            Some(hint) => format!("{}; {hint}", body.message),
            None => body.message.clone(),
        },
        ClientError::Down { .. } => "the daemon is away; `pinfold up` starts it".to_owned(),
        ClientError::Broken(_)
        | ClientError::Mute(_)
        | ClientError::Stranger { .. }
        | ClientError::Garbled(_) => error.to_string(),
    }
}

fn send(client: &Client, id: String, name: &str, text: String) -> UiReply {
    let message = NewMessage { text, key: None, files: Vec::new() };
    match client.ask(&endpoint::Send::call(&id, &query::Patience::default(), &message)) {
        Ok(sent) => UiReply::Sent { id, said: sent.note.unwrap_or_else(|| format!("sent to `{name}`")) },
        Err(error) => UiReply::Failed(format!("{}; the message is kept here", said(&error))),
    }
}

fn gathered(client: &Client, id: &str) -> Result<SessionDetails, ClientError> {
    let session: Session = client.ask(&endpoint::Show::call(id))?;
    let last = query::Messages { last: Some(MESSAGES), ..query::Messages::default() };
    let messages = client.ask(&endpoint::Messages::call(id, &last))?;
    let which = query::Events {
        session: Some(id.to_owned()),
        last: Some(EVENTS),
        follow: Some(false),
        ..query::Events::default()
    };
    let mut events = Vec::new();
    client.each(&endpoint::ListEvents::call(&which), |event| events.push(event))?;
    let which = query::Logs { n: Some(LINES), ..query::Logs::default() };
    let lines = client.lines(&endpoint::Logs::call(id, &which))?;
    let log = lines.map_while(Result::ok).filter_map(|line| serde_json::from_str::<LogLine>(&line).ok());
    Ok(SessionDetails { session, messages, events, log: log.collect() })
}

/// Creates a session as `new` does, with what it takes from the caller.
fn made(client: &Client, global: &Global, mut request: NewSession) -> Result<(String, String), String> {
    request.dir = request.dir.map(|dir| whole(&dir));
    let mut request = definition::from_here(request).map_err(|failure| failure.to_string())?;
    definition::take_from_here(&mut request, global);
    let named = !request.name.is_empty();
    let made = definition::create(client, &mut request, named).map_err(|error| said(&error))?;
    Ok((made.id, made.name))
}

/// A path with `~` expanded.
fn whole(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => std::path::absolute(path)
            .map_or_else(|_| path.to_owned(), |path| path.to_string_lossy().into_owned()),
    }
}

/// The directories that begin like this path, each with a slash; hidden ones only if a dot was typed.
fn completed(path: &str) -> Vec<String> {
    let (above, begun) =
        path.rsplit_once('/').map_or(("", path), |(above, begun)| (&path[..above.len() + 1], begun));
    let place = if above.is_empty() { ".".to_owned() } else { whole(above) };
    let Ok(entries) = std::fs::read_dir(Path::new(&place)) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(begun) && (begun.starts_with('.') || !name.starts_with('.')))
        .map(|name| format!("{above}{name}/"))
        .take(CANDIDATES)
        .collect();
    found.sort();
    found
}
