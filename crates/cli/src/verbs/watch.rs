//! `logs`: what agents print.

use super::sessions::{encode, path};
use super::{output, say};
use crate::args::Global;
use crate::connect;
use crate::edge::Words;
use crate::error::Failure;
use clap::Args;
use pinfold_api::ClientError;
use pinfold_api::object::LogLine;
use serde_json::Value;

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
