//! How long it takes, as a whole command, to ask for the status of 200 children, and for all about one of
//! them.

use super::field::{self, Peers};
use super::site::Site;
use super::supervisor::Supervisor;
use super::tried::{self, Tried, tried};
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
    let (names, mut all): (Vec<&str>, Vec<Tried<Watched>>) = field::all(peers)
        .into_iter()
        .map(|(name, supervisor)| (name, tried(|| watched(Site::new(root.join(name), COUNT), supervisor))))
        .unzip();
    std::thread::sleep(SETTLED);
    for _ in 0..ROUNDS {
        for Watched { site, supervisor, lists, pages } in all.iter_mut().flatten() {
            lists.extend(supervisor.status(site).map(timed));
            pages.extend(supervisor.page(site).map(timed));
        }
    }
    for Watched { site, supervisor, .. } in all.iter_mut().flatten() {
        supervisor.stop(site);
    }
    let cell =
        |times: &[f64]| if times.is_empty() { "-".into() } else { format!("{:.1}", median(times.to_vec())) };
    let lists = tried::cells(&all, |watched| cell(&watched.lists));
    let pages = tried::cells(&all, |watched| cell(&watched.pages));
    row(table, "status of 200, whole command, ms", lists, "<= 5");
    row(table, "one page about one of 200, whole command, ms", pages, "<= 5");
    tried::reasons(table, &names, &all);
}

/// One supervisor with all its children, and how long its answers took, in milliseconds.
struct Watched {
    site: Site,
    supervisor: Box<dyn Supervisor>,
    lists: Vec<f64>,
    pages: Vec<f64>,
}

fn watched(site: Site, mut supervisor: Box<dyn Supervisor>) -> Watched {
    supervisor.prepare(&site);
    let known = site.births().len();
    supervisor.start(&site);
    site.await_births(known, COUNT, Duration::from_millis(20));
    Watched { site, supervisor, lists: Vec::new(), pages: Vec::new() }
}

/// Returns how long a command takes, in milliseconds.
fn timed(mut command: Command) -> f64 {
    let began = Instant::now();
    _ = command.status().unwrap();
    began.elapsed().as_secs_f64() * 1e3
}
