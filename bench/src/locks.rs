//! Locks beside raw flock, fdatasync and util-linux flock(1).

use crate::peers::beside;
use crate::table::{Table, median};
use pinfold_lock::{Folder, Request, Resource, fault};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BATCHES: usize = 31;
const IN_BATCH: u32 = 2000;
const COMMANDS: usize = 301;
const SYNCS: usize = 101;
const CONTENDERS: usize = 64;
const CONTEND_SECONDS: u64 = 2;

pub(crate) fn run() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let folder = Folder::open(root.join("locks")).unwrap();
    let mut table = Table::new(["", "pinfold", "peer", "ratio", "peer is; must"]);
    key(&mut table, &root, &folder);
    directory(&mut table, &root, &folder);
    first_in_boot(&mut table, &root, &folder);
    first_ever(&mut table, &root, &folder);
    whole_command(&mut table, &root);
    contention(&mut table, &root);
    table.print();
}

fn microseconds(each: Duration) -> f64 {
    each.as_secs_f64() * 1e6
}

/// Returns the medians of many short batches, in which the two take turns, so that both meet the same noise.
fn take_turns(mut ours: impl FnMut(), mut peer: impl FnMut()) -> (f64, f64) {
    let mut measured = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        measured.0.push(batch(&mut ours));
        measured.1.push(batch(&mut peer));
    }
    (median(measured.0), median(measured.1))
}

fn batch(work: &mut impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..IN_BATCH).for_each(|_| work());
    microseconds(began.elapsed() / IN_BATCH)
}

fn pair(folder: &Folder, resource: &Resource, request: &Request) {
    let receipt = folder.try_acquire(resource, request).unwrap().release();
    assert!(receipt.trouble.is_none());
}

fn raw(path: &Path) {
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap();
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    rustix::io::pwrite(&file, &[0; 256], 0).unwrap();
}

fn key(table: &mut Table, root: &Path, folder: &Folder) {
    let (resource, request) = (Resource::Key("bench".into()), Request::default());
    let path = root.join("raw");
    std::fs::write(&path, [0; 4096]).unwrap();
    let (ours, peer) = take_turns(|| pair(folder, &resource, &request), || raw(&path));
    table.compare(
        "key: acquire + release",
        ours,
        peer,
        "µs",
        "raw open + flock + write 256 B + close; 8 µs where raw is 2.3 µs (3.5 x)",
    );
}

fn directory(table: &mut Table, root: &Path, folder: &Folder) {
    let path = root.join("1/2/3/4/5");
    std::fs::create_dir_all(&path).unwrap();
    let (resource, request) = (Resource::Directory(path), Request::default());
    let raw_path = root.join("raw");
    let (ours, peer) = take_turns(|| pair(folder, &resource, &request), || raw(&raw_path));
    let depth = root.join("1/2/3/4/5").components().count();
    let what = format!("directory five levels deep ({depth} with the way to it)");
    table.compare(&what, ours, peer, "µs", "raw flock of one file");
}

/// Alternates the two, each prepared outside the measured time.
fn alternate(
    mut ours: impl FnMut() -> Duration,
    mut peer: impl FnMut() -> Duration,
    times: usize,
) -> (f64, f64) {
    let measured: Vec<(f64, f64)> =
        (0..times).map(|_| (microseconds(ours()), microseconds(peer()))).collect();
    (median(measured.iter().map(|m| m.0).collect()), median(measured.iter().map(|m| m.1).collect()))
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn first_in_boot(table: &mut Table, root: &Path, folder: &Folder) {
    let (resource, request) = (Resource::Key("boot".into()), Request::default());
    pair(folder, &resource, &request);
    let path = root.join("synced");
    std::fs::write(&path, [0; 8192]).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.sync_all().unwrap();
    let ours = || {
        fault::pretend_reboot(folder, &resource).unwrap();
        timed(|| pair(folder, &resource, &request))
    };
    let peer = || {
        rustix::io::pwrite(&file, &[1; 512], 0).unwrap();
        timed(|| rustix::fs::fdatasync(&file).unwrap())
    };
    let (ours, peer) = alternate(ours, peer, SYNCS);
    table.compare("key: first grant in a boot", ours, peer, "µs", "one fdatasync of one page; 3 x");
}

fn first_ever(table: &mut Table, root: &Path, folder: &Folder) {
    let request = Request::default();
    let mut number = 0;
    let ours = || {
        number += 1;
        let resource = Resource::Key(format!("new {number}"));
        timed(|| pair(folder, &resource, &request))
    };
    let mut other = 0;
    let peer = || {
        other += 1;
        let file = std::fs::File::create(root.join(format!("new {other}"))).unwrap();
        rustix::io::pwrite(&file, &[1; 8192], 0).unwrap();
        timed(|| rustix::fs::fdatasync(&file).unwrap())
    };
    let (ours, peer) = alternate(ours, peer, SYNCS);
    table.compare("key: first grant ever", ours, peer, "µs", "one fdatasync of a new file; 3 x");
}

fn binary() -> PathBuf {
    let path = beside("pinfold");
    assert!(path.exists(), "{} is missing: cargo build --release -p pinfold", path.display());
    path
}

fn whole_command(table: &mut Table, root: &Path) {
    let binary = binary();
    let pinfold = || {
        let mut command = Command::new(&binary);
        command
            .args(["lock", "key:k", "--", "true"])
            .env("PINFOLD_LOCKS", root.join("command"))
            .env("PINFOLD_HOME", root);
        timed(|| assert!(command.status().unwrap().success()))
    };
    let flock = || {
        let mut command = Command::new("flock");
        command.arg(root.join("flock")).arg("true");
        timed(|| assert!(command.status().unwrap().success()))
    };
    let (ours, peer) = alternate(pinfold, flock, COMMANDS);
    table.compare("pinfold lock key:k -- true", ours / 1000.0, peer / 1000.0, "ms", "flock k true; 1.5 x");
}

fn contention(table: &mut Table, root: &Path) {
    for (who, what) in [("pinfold", "pinfold"), ("raw", "raw flock")] {
        let counts = contenders(who, root);
        let total: u64 = counts.iter().sum();
        let square: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
        let fairness = (total as f64).powi(2) / (counts.len() as f64 * square);
        table.row([
            format!("{CONTENDERS} processes contend: {what}"),
            format!("{} grants/s", total / CONTEND_SECONDS),
            format!("least {}, most {}", counts.iter().min().unwrap(), counts.iter().max().unwrap()),
            format!("{fairness:.3}"),
            "Jain's fairness: 1 = all alike".to_owned(),
        ]);
    }
}

fn contenders(who: &str, root: &Path) -> Vec<u64> {
    let seconds = CONTEND_SECONDS.to_string();
    let start = || {
        let words = ["contend", who, root.to_str().unwrap(), &seconds];
        Command::new(beside("pinfold-bench")).args(words).stdout(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..CONTENDERS).map(|_| start()).collect();
    let counts = children.into_iter().map(|child| {
        let output = child.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    });
    counts.collect()
}

/// One contender: takes the lock as often as it can, and prints how often that was.
pub(crate) fn contend(who: &str, root: &Path, seconds: u64) {
    let folder = Folder::open(root.join("locks")).unwrap();
    let (resource, request) = (Resource::Key("contended".into()), Request::default());
    let path = root.join("contended");
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut count: u64 = 0;
    while Instant::now() < until {
        if who == "raw" {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).unwrap();
            rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
            rustix::io::pwrite(&file, &[0; 256], 0).unwrap();
        } else {
            let receipt = folder.acquire(&resource, &request).unwrap().release();
            assert!(receipt.trouble.is_none());
        }
        count += 1;
    }
    println!("{count}");
}
