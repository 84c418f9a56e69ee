//! What a thousand idle children cost: memory and time of the supervisor's processes, not of the children.

use super::field::{self, Peers};
use super::site::Site;
use super::supervisor::Supervisor;
use super::tried::{self, Tried, tried};
use super::{row, say};
use crate::table::Table;
use std::path::Path;
use std::time::{Duration, Instant};

const COUNT: usize = 1000;
/// How many of pinfold's sessions have a memory limit, so that its watchdog has something to do.
const LIMITED: usize = 100;
/// Everything has settled after this time.
const SETTLED: Duration = Duration::from_secs(10);
/// As long as the longest interval between two readings of a watchdog.
const WATCHED: Duration = Duration::from_secs(20);

/// What one supervisor costs.
struct Cost {
    /// Memory of all its processes, shared pages divided, in KiB.
    pss: u64,
    /// The same, for the topmost process.
    first: u64,
    /// Private memory of each other process, in KiB.
    private: Option<u64>,
    /// Milliseconds of processor time per second.
    busy: f64,
}

pub(crate) fn run(table: &mut Table, root: &Path, peers: &Peers) {
    let (names, costs): (Vec<&str>, Vec<Tried<Cost>>) = field::with_limits(peers, LIMITED)
        .into_iter()
        .map(|(name, mut supervisor)| {
            say(&format!("idle: {COUNT} children under {name}"));
            (name, tried(|| cost(&Site::new(root.join(name), COUNT), supervisor.as_mut())))
        })
        .unzip();
    let cells = |cell: &dyn Fn(&Cost) -> String| tried::cells(&costs, cell);
    let megabytes = |kibibytes: u64| format!("{:.1}", kibibytes as f64 * 1024.0 / 1e6);
    let total = cells(&|cost| megabytes(cost.pss));
    row(table, &format!("memory at {COUNT} idle, MB PSS"), total, "below s6, aim below runit");
    row(table, "  the first process alone", cells(&|cost| megabytes(cost.first)), "<= 15");
    let private = |cost: &Cost| cost.private.map_or("-".into(), |private| private.to_string());
    row(table, "  each of the others, private KiB", cells(&private), "about 100");
    let busy = cells(&|cost| format!("{:.2}", cost.busy));
    row(table, &format!("idle at {COUNT}, ms/s ({LIMITED} of pinfold's with a memory limit)"), busy, "< 1");
    tried::reasons(table, &names, &costs);
}

fn cost(site: &Site, supervisor: &mut dyn Supervisor) -> Cost {
    supervisor.prepare(site);
    let known = site.births().len();
    supervisor.start(site);
    site.await_births(known, COUNT, Duration::from_millis(50));
    std::thread::sleep(SETTLED);
    let processes = supervisor.processes(site);
    let began = (Instant::now(), time_of(&processes));
    std::thread::sleep(WATCHED);
    let busy = (time_of(&processes) - began.1).as_secs_f64() / began.0.elapsed().as_secs_f64() * 1e3;
    let pss: Vec<u64> = processes.iter().map(|pid| memory(*pid, &["Pss:"])).collect();
    let private: Vec<u64> =
        processes.iter().skip(1).map(|pid| memory(*pid, &["Private_Dirty:", "Private_Clean:"])).collect();
    supervisor.stop(site);
    Cost {
        pss: pss.iter().sum(),
        first: pss.first().copied().unwrap_or(0),
        private: (!private.is_empty()).then(|| private.iter().sum::<u64>() / private.len() as u64),
        busy,
    }
}

fn memory(pid: u32, names: &[&str]) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let of = |name: &&str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    names.iter().filter_map(of).sum()
}

/// Returns the processor time of all threads of these processes, ended threads included.
fn time_of(processes: &[u32]) -> Duration {
    processes.iter().map(|pid| time_of_one(*pid)).sum()
}

fn time_of_one(pid: u32) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // How the kernel names a process's clock: the inverted pid, and the kind of clock.
    let clock = (!pid.cast_signed() << 3) | 2;
    // SAFETY: writes one timespec, or nothing when there is no such process.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
