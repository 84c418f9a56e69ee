//! kill -9 of supervisors while children run, some of which end meanwhile; then the supervisor is started
//! again.

use super::field::{self, Peers};
use super::site::{Site, kill, wait_for};
use super::supervisor::Supervisor;
use super::tried::{self, Tried, tried};
use super::{row, say};
use crate::table::Table;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const COUNT: usize = 50;
/// How many children end while their supervisor is down.
const ENDED: usize = 10;
/// By then every supervisor has started what it starts: most need a second, a scanner looks every five.
const LATER: Duration = Duration::from_secs(8);

/// Which processes are killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victims {
    First,
    All,
}

/// What was seen afterwards.
struct Seen {
    /// Children that were alive before and are now, as the only one of their number.
    kept: usize,
    doubled: usize,
    /// Numbers with no living child.
    missing: usize,
    known: Option<usize>,
}

pub(crate) fn run(table: &mut Table, root: &Path, peers: &Peers) {
    for (victims, name, what) in [
        (Victims::First, "first", "kill -9 of the first process, 10 of 50 end meanwhile"),
        (Victims::All, "all", "kill -9 of all its processes, 10 of 50 end meanwhile"),
    ] {
        say(what);
        let (names, seen): (Vec<&str>, Vec<Tried<Seen>>) = field::all(peers)
            .into_iter()
            .map(|(column, mut supervisor)| {
                let site = Site::new(root.join(name).join(column), COUNT);
                (column, tried(|| look(&site, supervisor.as_mut(), victims)))
            })
            .unzip();
        let cells = |cell: &dyn Fn(&Seen) -> String| tried::cells(&seen, cell);
        let must = match victims {
            Victims::First => "40 kept, 0 doubled, 0 missing, 10 known",
            Victims::All => "0 doubled, 0 missing",
        };
        let counts = |seen: &Seen| format!("{}/{}/{}", seen.kept, seen.doubled, seen.missing);
        row(table, &format!("{what}: kept/doubled/missing"), cells(&counts), must);
        let known = |seen: &Seen| seen.known.map_or("-".into(), |known| known.to_string());
        row(table, "  ends on record with their signal, of those 10", cells(&known), "");
        tried::reasons(table, &names, &seen);
    }
}

fn look(site: &Site, supervisor: &mut dyn Supervisor, victims: Victims) -> Seen {
    supervisor.prepare(site);
    let known = site.births().len();
    supervisor.start(site);
    site.await_births(known, COUNT, Duration::from_millis(20));
    // Killing a supervisor while it starts would be a different measurement.
    std::thread::sleep(Duration::from_secs(2));
    let (before, before_known) = (site.living(), supervisor.known_exits(site));
    let processes = supervisor.processes(site);
    match victims {
        Victims::First => processes.iter().take(1).for_each(|pid| kill(*pid)),
        Victims::All => processes.iter().for_each(|pid| kill(*pid)),
    }
    wait_for(Duration::from_millis(5), || (!is_there(processes[0])).then_some(()));
    before.values().flatten().take(ENDED).for_each(|pid| kill(*pid));
    supervisor.start(site);
    std::thread::sleep(LATER);
    let seen = judge(&before, &site.living());
    let ended = supervisor.known_exits(site).zip(before_known).map(|(after, before)| after - before);
    supervisor.stop(site);
    Seen { known: ended, ..seen }
}

fn judge(before: &BTreeMap<u32, Vec<u32>>, after: &BTreeMap<u32, Vec<u32>>) -> Seen {
    let kept = |number: &u32| after.get(number).is_some_and(|pids| Some(pids) == before.get(number));
    let numbers = 0..u32::try_from(COUNT).unwrap();
    Seen {
        kept: numbers.clone().filter(kept).count(),
        doubled: after.values().filter(|pids| pids.len() > 1).count(),
        missing: numbers.filter(|number| !after.contains_key(number)).count(),
        known: None,
    }
}

fn is_there(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}
