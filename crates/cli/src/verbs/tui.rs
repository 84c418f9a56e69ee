//! `tui`: the terminal UI, or one frame of it as text.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Kind, say};
use crate::tui;
use clap::Args;
use serde_json::json;

/// How it is wanted.
#[derive(Debug, Args)]
pub(crate) struct Tui {
    /// Print what a terminal of this size would show first, as text, and end
    #[arg(long, value_name = "COLUMNSxROWS")]
    frame: Option<String>,
}

impl Tui {
    /// The options for `pinfold` without a verb.
    pub(crate) fn usual() -> Tui {
        Tui { frame: None }
    }
}

impl DaemonVerb for Tui {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let Some(frame) = &self.frame else { return tui::open(daemon) };
        let (columns, rows) = size(frame)?;
        let lines = tui::frame(daemon, (columns, rows))?;
        if daemon.global.json {
            say(&json!({ "columns": columns, "rows": rows, "lines": lines }));
        } else {
            lines.iter().for_each(say);
        }
        Ok(())
    }
}

/// Parses columns and rows.
fn size(text: &str) -> Result<(u16, u16), Failure> {
    let parts =
        text.split_once('x').and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    let within = |(columns, rows): &(u16, u16)| (1..=1000).contains(columns) && (1..=1000).contains(rows);
    parts.filter(within).ok_or_else(|| {
        Failure::new(Kind::Usage, format!("`{text}` is not a size"))
            .hint("columns and rows, each from 1 to 1000: pinfold tui --frame 120x40")
    })
}
