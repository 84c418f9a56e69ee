//! From the start of a supervisor with a prepared folder to the first instruction of its last child.

use super::field::{self, Peers};
use super::site::{Site, now};
use super::supervisor::Supervisor;
use super::tried::{self, Tried, tried};
use super::{row, say};
use crate::table::{Table, median};
use std::path::Path;
use std::time::Duration;

/// Numbers of children, each with its number of rounds.
const SIZES: [(usize, usize); 2] = [(200, 5), (1000, 3)];

pub(crate) fn run(table: &mut Table, root: &Path, peers: &Peers) {
    for (count, rounds) in SIZES {
        say(&format!("start: {count} children each, {rounds} rounds"));
        let (names, mut all): (Vec<&str>, Vec<Tried<Started>>) = field::all(peers)
            .into_iter()
            .map(|(name, mut supervisor)| {
                let site = Site::new(root.join(format!("{count}/{name}")), count);
                supervisor.prepare(&site);
                (name, Ok(Started { site, supervisor, times: Vec::new() }))
            })
            .unzip();
        for _ in 0..rounds {
            for one in &mut all {
                let Ok(Started { site, supervisor, times }) = one else { continue };
                match tried(|| once(site, supervisor.as_mut()).as_secs_f64()) {
                    Ok(time) => times.push(time),
                    Err(reason) => *one = Err(reason),
                }
            }
        }
        let cells = tried::cells(&all, |started| format!("{:.2}", median(started.times.clone())));
        row(table, &format!("start of {count}, s"), cells, "ahead of s6 and daemontools");
        tried::reasons(table, &names, &all);
    }
}

/// One supervisor, and how long its starts took, in seconds.
struct Started {
    site: Site,
    supervisor: Box<dyn Supervisor>,
    times: Vec<f64>,
}

fn once(site: &Site, supervisor: &mut dyn Supervisor) -> Duration {
    let known = site.births().len();
    let began = now();
    supervisor.start(site);
    let births = site.await_births(known, site.count, Duration::from_millis(20));
    let last = births.iter().map(|birth| birth.at).max().unwrap();
    supervisor.stop(site);
    last - began
}
