//! How much of a long list is shown: all of it to programs, its end to people, and how much that leaves out.

use crate::global::Global;
use crate::output::{Failure, Json, talk};
use pinfold_api::endpoint::{Call, Endpoint};
use pinfold_api::{Client, Rest};
use std::io::{IsTerminal, Write};
use std::str::FromStr;

/// How many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// All of them.
    All,
    /// The last so many.
    Some(u32),
}

impl FromStr for Last {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Last, &'static str> {
        if text == "all" {
            return Ok(Last::All);
        }
        text.parse().map(Last::Some).map_err(|_| "it is a number, or `all`")
    }
}

/// How many a request for a list asks for, all of them where it says nothing; `usual` is what people see who do not say.
pub(crate) fn last(asked: Option<Last>, usual: Last, global: &Global) -> Option<u32> {
    let people = !global.json && std::io::stdout().is_terminal();
    match asked.unwrap_or(if people { usual } else { Last::All }) {
        Last::All => None,
        Last::Some(count) => Some(count),
    }
}

/// Passes the daemon's own words on: they would only be read to be written again.
pub(crate) fn pass_on<E: Endpoint>(client: &Client, call: &Call<E>) -> Result<Rest, Failure> {
    let mut out = Json::stdout();
    let rest = client.pass_on(call, &mut out)?;
    // A reader that has gone away is no failure of ours.
    _ = out.write_all(b"\n");
    Ok(rest)
}

/// Says what was left out.
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
