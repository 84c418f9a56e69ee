//! What verbs cost among two thousand live sessions, in this version and another.

use super::pinfold::Pinfold;
use super::site::{Site, kill};
use super::supervisor::Supervisor;
use super::{row, say};
use crate::table::{Table, median};
use std::path::Path;
use std::time::{Duration, Instant};

const COUNT: usize = 2000;
/// How many sessions one command stops.
const STOPPED: usize = 100;
const ROUNDS: usize = 5;

/// What is measured, in milliseconds, in the order of the rows.
const ROWS: [&str; 6] = [
    "new, whole command, ms",
    "new of a session whose directory is held, ms",
    "ls, ms",
    "locks, ms",
    "stop of 100, one command, ms",
    "up after kill -9 of the daemon, ms",
];

pub(crate) fn run(table: &mut Table, root: &Path, folder: &Path) {
    let this = measure(&root.join("this"), Pinfold::default());
    let other =
        measure(&root.join("other"), Pinfold { folder: Some(folder.to_owned()), ..Pinfold::default() });
    for (what, (this, other)) in ROWS.iter().zip(this.into_iter().zip(other)) {
        let cell = |times: Vec<f64>| format!("{:.1}", median(times));
        row(table, &format!("at {COUNT}: {what}"), [cell(this), cell(other)], "");
    }
}

fn measure(root: &Path, mut pinfold: Pinfold) -> [Vec<f64>; ROWS.len()] {
    say(&format!("crowd: {COUNT} sessions in {}", root.display()));
    let site = Site::new(root.to_owned(), COUNT);
    pinfold.prepare(&site);
    pinfold.start(&site);
    site.await_births(COUNT, COUNT, Duration::from_millis(50));
    let held = root.join("held");
    std::fs::create_dir(&held).unwrap();
    let held = held.to_str().unwrap();
    pinfold.said(&site, &["new", "holder", "--dir", held, "--", "sleep", "1000"]);
    let each = |begin: &str, rest: &[&str]| -> Vec<f64> {
        (0..ROUNDS)
            .map(|round| {
                let name = format!("{begin}{round}");
                timed(&pinfold, &site, &[&["new", &name], rest].concat())
            })
            .collect()
    };
    let created = each("new", &["--", "sleep", "1000"]);
    let blocked = each("blocked", &["--dir", held, "--", "sleep", "1000"]);
    let again = |words: &[&str]| (0..ROUNDS).map(|_| timed(&pinfold, &site, words)).collect::<Vec<f64>>();
    let (listed, locks) = (again(&["ls"]), again(&["locks"]));
    let stopped = stops(&pinfold, &site);
    let recovered = (0..ROUNDS).map(|_| recover(&pinfold, &site)).collect();
    pinfold.stop(&site);
    [created, blocked, listed, locks, stopped, recovered]
}

fn stops(pinfold: &Pinfold, site: &Site) -> Vec<f64> {
    let names: Vec<String> = (0..STOPPED * ROUNDS).map(|number| format!("s{number}")).collect();
    let stop = |names: &[String]| {
        let words: Vec<&str> = std::iter::once("stop").chain(names.iter().map(String::as_str)).collect();
        timed(pinfold, site, &words)
    };
    names.chunks(STOPPED).map(stop).collect()
}

fn recover(pinfold: &Pinfold, site: &Site) -> f64 {
    if let Some(daemon) = pinfold.processes(site).first() {
        kill(*daemon);
    }
    timed(pinfold, site, &["ls"])
}

fn timed(pinfold: &Pinfold, site: &Site, words: &[&str]) -> f64 {
    let began = Instant::now();
    pinfold.said(site, words);
    began.elapsed().as_secs_f64() * 1e3
}
