//! `usage`: what agents reported they used.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Kind, Paper, TableCell, Worth, plain, print, say, talk};
use crate::since::Since;
use clap::Args;
use pinfold_api::object::UsageSum;
use pinfold_api::{endpoint, query};
use serde_json::json;

/// By what, and from when on.
#[derive(Debug, Clone, Args)]
pub(crate) struct Usage {
    /// Make one sum for each of these
    #[arg(long, value_name = "WHAT", default_value = "session", value_parser = ["session", "account", "model", "day"])]
    by: String,
    /// Only what was used since then: a duration or a time
    #[arg(long, value_name = "T")]
    since: Option<String>,
}

impl DaemonVerb for Usage {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let since_ms = self.since.as_deref().map(moment).transpose()?;
        let asked = query::Usage { by: Some(self.by.clone()), since_ms };
        let sums = daemon.client()?.ask(&endpoint::Usage::call(&asked))?;
        if daemon.global.json {
            say(&json!(sums));
        } else if sums.is_empty() {
            if !daemon.global.quiet {
                talk(&"no agent has reported any usage");
            }
        } else {
            print(&Paper::stdout().fitted(heads(&self.by), &table(&sums)));
        }
        Ok(())
    }
}

fn moment(text: &str) -> Result<i64, Failure> {
    match Since::read(text)? {
        Since::At(at) => Ok(at),
        Since::After(_) => Err(Failure::new(Kind::Usage, format!("`{text}` needs a unit, or is not a time"))
            .hint("--since 7d or --since 2026-11-15T18:00:00Z")),
    }
}

fn heads(by: &str) -> [(&'static str, Worth); 6] {
    let first = match by {
        "account" => "ACCOUNT",
        "model" => "MODEL",
        "day" => "DAY",
        _ => "SESSION",
    };
    [
        (first, Worth::Needed(12)),
        ("TURNS", Worth::Needed(5)),
        ("INPUT", Worth::Needed(5)),
        ("CACHED", Worth::Needed(6)),
        ("OUTPUT", Worth::Needed(6)),
        ("COST", Worth::Needed(4)),
    ]
}

/// The rows, and their total if there are several.
fn table(sums: &[UsageSum]) -> Vec<[TableCell<'static>; 6]> {
    let mut rows: Vec<_> = sums.iter().map(row).collect();
    if sums.len() > 1 {
        let add =
            |read: fn(&UsageSum) -> Option<u64>| sums.iter().filter_map(read).reduce(u64::saturating_add);
        let costs = sums.iter().filter_map(|sum| sum.cost_usd);
        rows.push(row(&UsageSum {
            of: Some("all".into()),
            id: None,
            turns: sums.iter().map(|sum| sum.turns).sum(),
            input_tokens: add(|sum| sum.input_tokens),
            output_tokens: add(|sum| sum.output_tokens),
            cached_tokens: add(|sum| sum.cached_tokens),
            cost_usd: costs.reduce(|sum, more| sum + more),
        }));
    }
    rows
}

fn row(sum: &UsageSum) -> [TableCell<'static>; 6] {
    let count = |count: Option<u64>| plain(count.map_or_else(|| "-".to_owned(), |count| count.to_string()));
    [
        plain(sum.of.clone().unwrap_or_else(|| "-".to_owned())),
        plain(sum.turns.to_string()),
        count(sum.input_tokens),
        count(sum.cached_tokens),
        count(sum.output_tokens),
        plain(sum.cost_usd.map_or_else(|| "-".to_owned(), cost)),
    ]
}

/// An amount in dollars with cents, with more digits below ten cents.
pub(crate) fn cost(usd: f64) -> String {
    match usd {
        usd if usd != 0.0 && usd < 0.1 => format!("${usd:.4}"),
        usd => format!("${usd:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_have_more_digits() {
        let rows = [(0.0, "$0.00"), (0.0301, "$0.0301"), (0.5, "$0.50"), (12.345, "$12.35")];
        for (usd, told) in rows {
            assert_eq!(cost(usd), told);
        }
    }
}
