//! How long it takes, as a whole command, to ask for the status of 200 children, and for all about one of
//! them.

use super::field::{self, Peers};
use super::site::Site;
use super::{row, say};
use crate::table::{Table, median};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const COUNT: usize = 200;
const ROUNDS: usize = 21;
/// pm2 knows a child only some time after it runs.
const SETTLED: Duration = Duration::from_secs(3);

pub(crate) fn run(table: &mut Table, root: &Path, peers: &Peers) {
    say("status: 200 children each");
    let mut all: Vec<_> = field::all(peers)
        .into_iter()
        .map(|(name, mut supervisor)| {
            let site = Site::new(root.join(name), COUNT);
            supervisor.prepare(&site);
            let known = site.births().len();
            supervisor.start(&site);
            site.await_births(known, COUNT, Duration::from_millis(20));
            (site, supervisor, Vec::new(), Vec::new())
        })
        .collect();
    std::thread::sleep(SETTLED);
    for _ in 0..ROUNDS {
        for (site, supervisor, lists, pages) in &mut all {
            lists.extend(supervisor.status(site).map(timed));
            pages.extend(supervisor.page(site).map(timed));
        }
    }
    for (site, supervisor, _, _) in &mut all {
        supervisor.stop(site);
    }
    let cell = |times: Vec<f64>| if times.is_empty() { "-".into() } else { format!("{:.1}", median(times)) };
    let (lists, pages): (Vec<_>, Vec<_>) = all.into_iter().map(|(_, _, lists, pages)| (lists, pages)).unzip();
    row(table, "status of 200, whole command, ms", lists.into_iter().map(cell), "<= 5");
    row(table, "one page about one of 200, whole command, ms", pages.into_iter().map(cell), "<= 5");
}

/// Returns how long a command takes, in milliseconds.
fn timed(mut command: Command) -> f64 {
    let began = Instant::now();
    _ = command.status().unwrap();
    began.elapsed().as_secs_f64() * 1e3
}
