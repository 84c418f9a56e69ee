//! How long it takes to ask how 200 children are, as a whole command.

use super::field::{self, Peers};
use super::site::Site;
use super::{row, say};
use crate::table::{Table, median};
use std::path::Path;
use std::time::{Duration, Instant};

const COUNT: usize = 200;
const ROUNDS: usize = 21;
/// pm2 knows a child a while after it runs.
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
            (site, supervisor, Vec::new())
        })
        .collect();
    std::thread::sleep(SETTLED);
    for _ in 0..ROUNDS {
        for (site, supervisor, times) in &mut all {
            let Some(mut command) = supervisor.status(site) else { continue };
            let began = Instant::now();
            _ = command.status().unwrap();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (site, supervisor, _) in &mut all {
        supervisor.stop(site);
    }
    let cell = |times: Vec<f64>| if times.is_empty() { "-".into() } else { format!("{:.1}", median(times)) };
    row(table, "status of 200, whole command, ms", all.into_iter().map(|(_, _, times)| cell(times)), "<= 5");
}
