//! `logs`: prints what a session's agents printed.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::output::{Failure, Words, output, say};
use clap::Args;
use pinfold_api::object::LogLine;
use pinfold_api::{ClientError, endpoint, query};
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

impl Asks for Logs {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let client = daemon.client()?;
        let json = daemon.global.json;
        let words = if self.raw { Words::Raw } else { Words::for_stdout() };
        let mut all = Vec::new();
        for line in client.lines(&endpoint::Logs::call(&self.session, &self.which()))? {
            let line = line.map_err(ClientError::from)?;
            if json && !self.follow {
                all.extend(serde_json::from_str::<Value>(&line));
            } else if json {
                say(&line);
            } else if let Ok(line) = serde_json::from_str::<LogLine>(&line) {
                output(&line.text, words);
            }
        }
        if json && !self.follow {
            say(&Value::Array(all));
        }
        Ok(())
    }
}

impl Logs {
    fn which(&self) -> query::Logs {
        query::Logs {
            n: self.lines,
            run: self.run.clone(),
            follow: self.follow,
            message: self.message.clone(),
            raw: self.raw,
        }
    }
}
