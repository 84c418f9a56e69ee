//! How much of a long list is shown: all of it to programs, its end to people, with a note on what was left out.

use crate::global::Global;
use crate::output::{Failure, Json, talk};
use pinfold_api::endpoint::{Call, Endpoint};
use pinfold_api::{Client, Rest};
use std::io::{IsTerminal, Write};
use std::str::FromStr;

/// How many entries from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastEntries {
    /// All entries.
    All,
    /// At most this many.
    Some(u32),
}

impl FromStr for LastEntries {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<LastEntries, &'static str> {
        if text == "all" {
            return Ok(LastEntries::All);
        }
        text.parse().map(LastEntries::Some).map_err(|_| "it is a number, or `all`")
    }
}

/// How many entries to request, `None` for all; `usual` applies to people who did not say.
pub(crate) fn last(asked: Option<LastEntries>, usual: LastEntries, global: &Global) -> Option<u32> {
    let people = !global.json && std::io::stdout().is_terminal();
    match asked.unwrap_or(if people { usual } else { LastEntries::All }) {
        LastEntries::All => None,
        LastEntries::Some(count) => Some(count),
    }
}

/// Prints the daemon's answer as it came; parsing it would only mean writing it again.
pub(crate) fn pass_on<E: Endpoint>(client: &Client, call: &Call<E>) -> Result<Rest, Failure> {
    let mut out = Json::stdout();
    let rest = client.pass_on(call, &mut out)?;
    _ = out.write_all(b"\n");
    Ok(rest)
}

/// Says how much was left out.
pub(crate) fn say_how_many_more(rest: &Rest, shown: u64, what: &str, global: &Global) {
    let (count, over) = match (rest.total, rest.more_than) {
        (None, Some(count)) => (count, "more than "),
        (total, _) => (total.unwrap_or(0), ""),
    };
    let hidden = count.saturating_sub(shown);
    if hidden > 0 && !global.quiet {
        talk(&format!("{over}{hidden} earlier {what} are not shown; `-n all` shows them"));
    }
}
