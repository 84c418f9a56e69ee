//! `events`: what pinfold did.

use super::last::{self, Last};
use super::say;
use super::sessions::encode;
use crate::args::Global;
use crate::connect;
use crate::error::{Failure, Kind};
use clap::Args;
use pinfold_api::object::Event;
use pinfold_api::{Client, ClientError, units};

/// A person who asks for no number sees so many.
const SHOWN: u32 = 50;

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
    /// Only the last N; `all` for all of them. On a terminal the last 50 unless it says so
    #[arg(short = 'n', value_name = "N|all")]
    last: Option<Last>,
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
    // Whoever says from where on wants all of it.
    let default = if events.since.is_some() || events.follow { Last::All } else { Last::Some(SHOWN) };
    address.push_str(&last::query(events.last, default, global));
    if events.follow {
        return follow(&client, &address, global);
    }
    if global.json {
        return last::pass_on(&client, &address);
    }
    let mut shown = 0;
    let total = client.each(&address, |event: Event| {
        shown += 1;
        say(&sentence(&event));
    })?;
    last::say_how_many_more(total, shown, "events", global);
    Ok(())
}

fn since_of(text: &str) -> Result<String, Failure> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return Ok(format!("&since={text}"));
    }
    if let Ok(ago) = units::duration(text) {
        return Ok(format!("&since_ms={}", pinfold_kernel::clock::wall().saturating_sub(ago).as_millis()));
    }
    match units::moment(text) {
        Some(ms) => Ok(format!("&since_ms={ms}")),
        None => {
            Err(Failure::new(Kind::Usage, format!("`{text}` is not a duration, time or sequence number"))
                .hint("--since 5m, --since 2026-11-15T18:00:00Z or --since 120"))
        }
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

/// Who asked for it, where that was not a person.
fn by(event: &Event) -> Option<String> {
    let by = event.by.as_ref().filter(|by| by["kind"] == "session")?;
    Some(match by["session"].as_str() {
        Some(session) => format!(" (asked for by session {session})"),
        None => " (asked for by a run of another home)".to_owned(),
    })
}

/// One event for people: when, whose, what, why.
fn sentence(event: &Event) -> String {
    let at = event.at.get(..19).unwrap_or(&event.at).replace('T', " ");
    let session = event.session.as_deref().unwrap_or("-");
    let why = event.why.as_deref().unwrap_or("");
    let by = by(event).unwrap_or_default();
    format!("{:>6}  {at}  {session:<16}  {:<18}  {why}{by}", event.seq, event.kind).trim_end().to_owned()
}
