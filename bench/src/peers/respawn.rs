//! From the kill of a child to the first instruction of the next one.

use super::field::{self, Peers};
use super::site::{Site, kill, now};
use super::supervisor::Supervisor;
use super::{row, say};
use crate::table::{Table, part};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROUNDS: usize = 30;
/// A child lives longer than a second, because most supervisors restart at once only then.
const LIFE: Duration = Duration::from_millis(1200);

/// One supervisor with one child.
struct Kept {
    site: Site,
    supervisor: Box<dyn Supervisor>,
    milliseconds: Vec<f64>,
}

pub(crate) fn run(table: &mut Table, root: &Path, peers: &Peers) {
    say("respawn: one child each, killed in turn");
    let mut usual: Vec<Option<Kept>> = field::all(peers)
        .into_iter()
        .map(|(name, supervisor)| Some(keep(root.join(name), supervisor)))
        .collect();
    let mut bare: Vec<Option<Kept>> = field::without_shell(peers)
        .into_iter()
        .enumerate()
        .map(|(column, supervisor)| Some(keep(root.join(format!("bare{column}")), supervisor?)))
        .collect();
    let mut turns: Vec<&mut Kept> = usual.iter_mut().chain(&mut bare).flatten().collect();
    for _ in 0..ROUNDS {
        for kept in &mut turns {
            kept.milliseconds.push(once(&kept.site).as_secs_f64() * 1e3);
        }
        // Another one goes first each time, so that the cost of the pause before a round is shared.
        turns.rotate_left(1);
    }
    for kept in usual.iter_mut().chain(&mut bare).flatten() {
        kept.supervisor.stop(&kept.site);
    }
    let must = "<= 3, ahead of every peer";
    row(table, "crash to next first instruction, ms, median", cells(&usual, 0.5), must);
    row(table, "  p95", cells(&usual, 0.95), "");
    row(table, "  median without the shell of a `run` script", cells(&bare, 0.5), "");
}

fn keep(root: PathBuf, mut supervisor: Box<dyn Supervisor>) -> Kept {
    let site = Site::new(root, 1);
    supervisor.prepare(&site);
    let known = site.births().len();
    supervisor.start(&site);
    site.await_births(known, 1, Duration::from_millis(5));
    Kept { site, supervisor, milliseconds: Vec::new() }
}

fn cells(all: &[Option<Kept>], which: f64) -> Vec<String> {
    let cell = |kept: &Kept| format!("{:.2}", part(kept.milliseconds.clone(), which));
    all.iter().map(|kept| kept.as_ref().map_or_else(|| "-".to_owned(), cell)).collect()
}

fn once(site: &Site) -> Duration {
    let births = site.births();
    let last = births.last().unwrap();
    std::thread::sleep((last.at + LIFE).saturating_sub(now()));
    let killed = now();
    kill(last.pid);
    let next = site.await_births(births.len(), 1, Duration::from_millis(1));
    next[0].at - killed
}
