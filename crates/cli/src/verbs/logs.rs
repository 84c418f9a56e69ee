//! `logs`: prints the output of sessions.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::log_printer::LogPrinter;
use crate::long_list::LastEntries;
use crate::looking::looked;
use crate::output::{Failure, Kind, OutputStyle, say, talk};
use crate::since::Since;
use crate::tail;
use clap::Args;
use pinfold_api::object::LogLine;
use pinfold_api::{Client, ClientError, endpoint, query};
use serde_json::{Value, json};
use std::io::IsTerminal;

/// How many lines a person sees without asking for a number.
const SHOWN: usize = 200;

/// Which output.
#[derive(Debug, Clone, Args)]
pub(crate) struct Logs {
    /// One or more session names
    #[arg(required = true)]
    sessions: Vec<String>,
    /// Follow the output as it comes
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines, or `all` [default: 200 on a terminal, otherwise all]
    #[arg(short = 'n', long = "tail", value_name = "N|all")]
    lines: Option<LastEntries>,
    /// Print the time of each line
    #[arg(short = 't', long = "timestamps")]
    times: bool,
    /// Only what was printed since then: a duration (5m) or a time (RFC 3339)
    #[arg(long, value_name = "T", conflicts_with = "message")]
    since: Option<String>,
    /// Only this run: its id, a unique beginning of it, or its number
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only the output of the turn of this message
    #[arg(long, value_name = "ID", conflicts_with_all = ["follow", "lines", "run"])]
    message: Option<String>,
    /// As the agent printed it, with the sequences that a terminal obeys
    #[arg(long)]
    raw: bool,
}

impl DaemonVerb for Logs {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let which = self.which(daemon.global.json)?;
        if self.follow {
            return tail::follow(&self.sessions, &which, daemon, &|name| self.printed(name));
        }
        let client = daemon.client()?;
        let (mut all, mut first): (Vec<Value>, Option<Failure>) = (Vec::new(), None);
        for session in &self.sessions {
            match self.one(&client, session, &which, daemon, &mut all) {
                Err(failure) if self.sessions.len() > 1 => {
                    failure.tell(&daemon.global);
                    all.push(json!({ "session": session, "error": failure.object() }));
                    first.get_or_insert(failure.once_told());
                }
                other => other?,
            }
        }
        if daemon.global.json {
            say(&Value::Array(all));
        }
        first.map_or(Ok(()), Err)
    }
}

impl Logs {
    /// Prints the output of one session, or collects it for JSON.
    fn one(
        &self,
        client: &Client,
        session: &str,
        which: &query::Logs,
        daemon: &Daemon,
        all: &mut Vec<Value>,
    ) -> Result<(), Failure> {
        let (rest, lines) = client.told_lines(&endpoint::Logs::call(session, which))?;
        let mut printed = self.printed(session);
        let mut shown = 0;
        for line in lines {
            let line = line.map_err(ClientError::from)?;
            shown += 1;
            if daemon.global.json {
                all.extend(serde_json::from_str::<Value>(&line).map(|line| self.of_session(line, session)));
            } else if let Ok(line) = serde_json::from_str::<LogLine>(&line) {
                printed.print(&line);
            }
        }
        let hidden = rest.total.unwrap_or(0).saturating_sub(shown);
        if hidden > 0 && !daemon.global.quiet && !daemon.global.json {
            talk(&format!("{hidden} earlier lines are not shown; `-n all` shows them"));
        }
        looked(client, session);
        Ok(())
    }

    /// Adds the session's name to a line if there are several sessions.
    fn of_session(&self, mut line: Value, session: &str) -> Value {
        if self.sessions.len() > 1 {
            line["session"] = json!(session);
        }
        line
    }

    fn printed(&self, session: &str) -> LogPrinter {
        let words = if self.raw { OutputStyle::Raw } else { OutputStyle::for_stdout() };
        let width = self.sessions.iter().map(String::len).max().unwrap_or(0);
        let before = (self.sessions.len() > 1).then(|| format!("{session:<width$} | "));
        LogPrinter::new(words, before, self.times)
    }

    fn which(&self, json: bool) -> Result<query::Logs, Failure> {
        let people = !json && std::io::stdout().is_terminal();
        let all = !people || self.since.is_some();
        let usual =
            if all { LastEntries::All } else { LastEntries::Some(u32::try_from(SHOWN).unwrap_or(u32::MAX)) };
        let since_ms = match self.since.as_deref().map(Since::read).transpose()? {
            Some(Since::At(ms)) => Some(ms),
            None => None,
            Some(Since::After(number)) => {
                let text = format!("`{number}` is not a duration or time");
                return Err(Failure::new(Kind::Usage, text).hint("lines have no numbers: --since 5m"));
            }
        };
        let lines = match (self.lines, self.message.is_some()) {
            (None, true) => None,
            (asked, _) => Some(asked.unwrap_or(usual)),
        };
        Ok(query::Logs {
            n: lines.map(|lines| match lines {
                LastEntries::All => usize::MAX,
                LastEntries::Some(count) => count as usize,
            }),
            run: self.run.clone(),
            since_ms,
            count: people && self.lines.is_none() && !all && self.message.is_none() && !self.follow,
            follow: self.follow,
            message: self.message.clone(),
            raw: self.raw,
        })
    }
}
