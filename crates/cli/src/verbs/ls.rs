//! `ls`: lists sessions.

use crate::daemon::Daemon;
use crate::doing::Asks;
use crate::output::{Cell, Failure, Paper, Shade, plain, preview, print, say, talk};
use clap::Args;
use pinfold_api::object::Row;
use pinfold_api::word::State;
use pinfold_api::{ClientError, endpoint, query};

/// Which sessions.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Ls {
    /// Archived ones too
    #[arg(long)]
    all: bool,
    /// Only those in this state
    #[arg(long, value_name = "S")]
    state: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "T")]
    tag: Option<String>,
}

impl Asks for Ls {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let which = query::Sessions {
            all: self.all,
            state: self.state.clone(),
            tag: self.tag.clone(),
            ..query::Sessions::default()
        };
        if daemon.global.json {
            // The daemon's own words: they would only be read to be written again.
            let text = daemon.at_once(|client| client.text(&endpoint::Sessions::call(&which)))?;
            say(&String::from_utf8_lossy(&text));
            return Ok(());
        }
        let text = daemon.at_once(|client| client.text(&endpoint::Table::call(&which)))?;
        let rows: Vec<Row<'_>> = serde_json::from_slice(&text).map_err(ClientError::Garbled)?;
        if !rows.is_empty() {
            show(rows);
        } else if !daemon.global.quiet {
            talk(&self.none());
        }
        Ok(())
    }
}

impl Ls {
    fn none(&self) -> &'static str {
        match (&self.state, &self.tag) {
            (None, None) => "no sessions; `pinfold new NAME -- COMMAND` makes one",
            (Some(_), _) | (_, Some(_)) => "no such sessions",
        }
    }
}

fn show(rows: Vec<Row<'_>>) {
    let rows: Vec<[Cell<'_>; 7]> = rows.into_iter().map(cells).collect();
    let heads = ["NAME", "STATE", "MODE", "PID", "RESTARTS", "COMMAND", "WHY"];
    print(&Paper::stdout().table(heads, &rows));
}

fn cells(row: Row<'_>) -> [Cell<'_>; 7] {
    let shade = shade_of(&row.state);
    [
        plain(row.name),
        Cell { text: row.state.to_string().into(), shade },
        plain(row.mode.to_string()),
        plain(row.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string())),
        plain(row.restarts.to_string()),
        Cell { text: preview(&row.command, 24).into_owned().into(), shade: Shade::Faint },
        plain(row.why),
    ]
}

/// How a state looks.
fn shade_of(state: &State) -> Shade {
    match state {
        State::Running | State::Held => Shade::Good,
        State::Starting | State::Stopping | State::Backoff | State::Blocked => Shade::Busy,
        State::Failed => Shade::Bad,
        State::Idle | State::Stopped | State::Archived => Shade::Faint,
        State::Damaged | State::Unknown | State::Other(_) => Shade::Plain,
    }
}
