//! `logs` and `events`: what agents print, and what pinfold did.

use super::sessions::{encode, path};
use super::{output, say};
use crate::args::Global;
use crate::connect;
use crate::edge::Words;
use crate::error::{Failure, Kind};
use clap::Args;
use pinfold_api::object::{Event, LogLine};
use pinfold_api::{Client, ClientError, units};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Which output.
#[derive(Debug, Clone, Args)]
pub(crate) struct Logs {
    /// The session
    session: String,
    /// Follow the output as it comes
    #[arg(short, long)]
    follow: bool,
    /// The last N lines
    #[arg(short = 'n', value_name = "N")]
    lines: Option<usize>,
    /// Only this run: its id, a unique beginning of it, or its number
    #[arg(long, value_name = "R")]
    run: Option<String>,
    /// Only the output of the turn of this message
    #[arg(long, value_name = "ID", conflicts_with_all = ["follow", "lines", "run"])]
    message: Option<String>,
    /// As the agent printed it, with the sequences that a terminal obeys
    #[arg(long)]
    raw: bool,
}

pub(crate) fn logs(logs: &Logs, global: &Global) -> Result<(), Failure> {
    let client = connect::client(global)?;
    let mut address = format!("{}?follow={}", path(&logs.session, "logs"), logs.follow);
    if let Some(lines) = logs.lines {
        address.push_str(&format!("&n={lines}"));
    }
    if let Some(run) = &logs.run {
        address.push_str(&format!("&run={}", encode(run)));
    }
    if let Some(message) = &logs.message {
        address.push_str(&format!("&message={}", encode(message)));
    }
    // A daemon of before does not know the word, and needs it only where it is meant.
    if logs.raw {
        address.push_str("&raw=true");
    }
    let words = if logs.raw { Words::Raw } else { Words::for_stdout() };
    let mut all = Vec::new();
    for line in client.lines(&address)? {
        let line = line.map_err(ClientError::from)?;
        if global.json && !logs.follow {
            all.extend(serde_json::from_str::<Value>(&line));
        } else if global.json {
            say(&line);
        } else if let Ok(line) = serde_json::from_str::<LogLine>(&line) {
            output(&line.text, words);
        }
    }
    if global.json && !logs.follow {
        say(&Value::Array(all));
    }
    Ok(())
}

/// Which events.
#[derive(Debug, Clone, Args)]
pub(crate) struct Events {
    /// Follow events as they come
    #[arg(short, long)]
    follow: bool,
    /// Only this session's
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// Since: a duration (5m), a moment (RFC 3339) or a number
    #[arg(long, value_name = "T")]
    since: Option<String>,
}

pub(crate) fn events(events: &Events, global: &Global) -> Result<(), Failure> {
    let client = connect::client(global)?;
    let mut address = format!("/v1/events?follow={}", events.follow);
    if let Some(session) = &events.session {
        address.push_str(&format!("&session={}", encode(session)));
    }
    if let Some(since) = &events.since {
        address.push_str(&since_of(since)?);
    }
    if events.follow {
        return follow(&client, &address, global);
    }
    let all: Vec<Event> = client.get(&address)?;
    if global.json {
        say(&json!(all));
    } else {
        for event in &all {
            say(&sentence(event));
        }
    }
    Ok(())
}

fn since_of(text: &str) -> Result<String, Failure> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return Ok(format!("&since={text}"));
    }
    if let Ok(ago) = units::duration(text) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        return Ok(format!("&since_ms={}", now.saturating_sub(ago).as_millis()));
    }
    match units::moment(text) {
        Some(ms) => Ok(format!("&since_ms={ms}")),
        None => Err(Failure::new(Kind::Usage, format!("`{text}` is no duration, no moment and no number"))
            .hint("--since 5m, --since 2026-11-15T18:00:00Z or --since 120")),
    }
}

fn follow(client: &Client, address: &str, global: &Global) -> Result<(), Failure> {
    for line in client.lines(address)? {
        let line = line.map_err(ClientError::from)?;
        let Some(data) = line.strip_prefix("data:") else { continue };
        if global.json {
            say(&data.trim_start());
        } else if let Ok(event) = serde_json::from_str::<Event>(data.trim_start()) {
            say(&sentence(&event));
        }
    }
    Ok(())
}

/// One event for people: when, whose, what, why.
fn sentence(event: &Event) -> String {
    let at = event.at.get(..19).unwrap_or(&event.at).replace('T', " ");
    let session = event.session.as_deref().unwrap_or("-");
    let why = event.why.as_deref().unwrap_or("");
    format!("{:>6}  {at}  {session:<16}  {:<18}  {why}", event.seq, event.kind).trim_end().to_owned()
}
