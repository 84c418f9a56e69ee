//! `search`: full-text search over names, messages, answers and reasons.

use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::long_list;
use crate::output::{Failure, Paper, Shade, TableCell, moment, plain, print, talk};
use clap::Args;
use pinfold_api::object::Hit;
use pinfold_api::{Rest, endpoint, query};

/// What is sought.
#[derive(Debug, Clone, Args)]
pub(crate) struct Search {
    /// Words, or beginnings of words, that must all be there
    text: String,
    /// Only what belongs to this session
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// At most N
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 20)]
    limit: usize,
}

impl DaemonVerb for Search {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let (client, global) = (daemon.client()?, &daemon.global);
        let sought =
            query::Search { text: self.text.clone(), session: self.session.clone(), limit: Some(self.limit) };
        let call = endpoint::Search::call(&sought);
        let rest = if global.json {
            long_list::pass_on(&client, &call)?
        } else {
            let mut rows: Vec<[TableCell<'static>; 4]> = Vec::new();
            let rest = client.each(&call, |hit: Hit| rows.push(row(&hit)))?;
            if !rows.is_empty() {
                print(&Paper::stdout().table(["SESSION", "KIND", "AT", "TEXT"], &rows));
            } else if !global.quiet {
                talk(&"nothing found");
            }
            rest
        };
        if let Some(words) = left_out(&rest).filter(|_| !global.quiet) {
            talk(&words);
        }
        Ok(())
    }
}

fn row(hit: &Hit) -> [TableCell<'static>; 4] {
    [
        plain(hit.session.clone().unwrap_or_else(|| "-".to_owned())),
        TableCell { text: hit.kind.word().to_owned().into(), shade: Shade::Plain },
        plain(moment(&hit.at)),
        plain(hit.excerpt.clone()),
    ]
}

/// The note for an index that is not complete yet.
fn left_out(rest: &Rest) -> Option<String> {
    let (done, total) = (rest.indexed?, rest.total?);
    (done < total)
        .then(|| format!("{done} of {total} records are indexed so far; the rest follows by itself"))
}
