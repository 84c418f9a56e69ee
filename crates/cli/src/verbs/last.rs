//! How much of a long list is shown: all of it to programs, its end to people, and how much that leaves out.

use crate::args::Global;
use crate::edge::talk;
use crate::error::Failure;
use pinfold_api::Client;
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

/// What a request for a list says of how many; `usual` is what people see who do not say.
pub(crate) fn query(asked: Option<Last>, usual: Last, global: &Global) -> String {
    let people = !global.json && std::io::stdout().is_terminal();
    match asked.unwrap_or(if people { usual } else { Last::All }) {
        Last::All => String::new(),
        Last::Some(count) => format!("&last={count}"),
    }
}

/// Passes the daemon's own words on: they would only be read to be written again.
pub(crate) fn pass_on(client: &Client, address: &str) -> Result<(), Failure> {
    let mut out = crate::edge::Json::stdout();
    client.pass_on(address, &mut out)?;
    // A reader that has gone away is no failure of ours.
    _ = out.write_all(b"\n");
    Ok(())
}

/// Says what was left out.
pub(crate) fn say_how_many_more(total: Option<u64>, shown: u64, what: &str, global: &Global) {
    let hidden = total.unwrap_or(0).saturating_sub(shown);
    if hidden > 0 && !global.quiet {
        talk(&format!("{hidden} earlier {what} are not shown; `-n all` shows them"));
    }
}
