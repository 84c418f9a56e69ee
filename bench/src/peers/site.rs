//! Where one supervisor works: its folder, its children's records, and its processes.

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any supervisor needs for anything here, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const MARK: &str = "PINFOLD_BENCH_SITE";

/// One start of a child.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Birth {
    pub(crate) number: u32,
    pub(crate) pid: u32,
    pub(crate) at: Duration,
}

/// A folder with the services of one supervisor, all of them the same child program.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) root: PathBuf,
    pub(crate) count: usize,
    pub(crate) child: PathBuf,
    records: PathBuf,
}

impl Site {
    pub(crate) fn new(root: PathBuf, count: usize) -> Site {
        std::fs::create_dir_all(&root).unwrap();
        let records = root.join("records");
        std::fs::write(&records, []).unwrap();
        let child = beside("pinfold-bench-child");
        Site { root, count, child, records }
    }

    /// Returns the words with which a child is started.
    pub(crate) fn words(&self, number: usize) -> [String; 3] {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        [text(&self.child), text(&self.records), number.to_string()]
    }

    /// Returns a command whose processes can be found by their environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env(MARK, &self.root).env("PINFOLD_BENCH_RECORDS", &self.records).current_dir(&self.root);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Returns every start since the site was made.
    pub(crate) fn births(&self) -> Vec<Birth> {
        self.births_from(0)
    }

    /// Returns every start after the first `known`.
    pub(crate) fn births_from(&self, known: usize) -> Vec<Birth> {
        let file = std::fs::File::open(&self.records).unwrap();
        let length = usize::try_from(file.metadata().unwrap().len()).unwrap() / 16 * 16;
        let mut bytes = vec![0; length.saturating_sub(known * 16)];
        file.read_exact_at(&mut bytes, known as u64 * 16).unwrap();
        bytes.as_chunks::<16>().0.iter().map(birth).collect()
    }

    /// Waits for `more` starts after the known ones, in the order of their records.
    pub(crate) fn await_births(&self, known: usize, more: usize, glance: Duration) -> Vec<Birth> {
        let births = || Some(self.births_from(known)).filter(|births| births.len() >= more);
        wait_for(glance, births).unwrap_or_else(|| {
            let seen = self.births_from(known).len();
            fail(&format!("{}: {seen} of {more} children started", self.root.display()))
        })
    }

    /// Returns the processes with this site's mark that are not children.
    pub(crate) fn supervisors(&self) -> Vec<u32> {
        let children: Vec<u32> = self.births().iter().map(|birth| birth.pid).collect();
        self.marked().into_iter().filter(|pid| !children.contains(pid)).collect()
    }

    fn marked(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.root.display());
        let is_marked = |pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
        };
        processes().into_iter().filter(is_marked).collect()
    }

    /// Ends every process with this site's mark.
    pub(crate) fn end_all(&self) {
        let gone = wait_for(Duration::from_millis(20), || {
            let left = self.marked();
            left.iter().for_each(|pid| kill(*pid));
            left.is_empty().then_some(())
        });
        assert!(gone.is_some(), "processes of {} do not end", self.root.display());
    }

    /// Returns the living children, by their number.
    pub(crate) fn living(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut living: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for birth in self.births().into_iter().filter(|birth| is_child(birth.pid)) {
            living.entry(birth.number).or_default().push(birth.pid);
        }
        living
    }
}

impl Drop for Site {
    /// Leaves nothing behind, even if a measurement failed. A shim whose daemon and agent have ended leaves
    /// by itself.
    fn drop(&mut self) {
        self.end_all();
        self.living().values().flatten().for_each(|pid| kill(*pid));
    }
}

/// Returns the path of a program that was built with this one.
pub(crate) fn beside(name: &str) -> PathBuf {
    // A build in the meantime replaces our file; the kernel then marks our own path.
    let own = std::env::current_exe().unwrap();
    own.with_file_name(name)
}

fn birth(bytes: &[u8; 16]) -> Birth {
    let small = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let at = u64::from_le_bytes(*bytes[8..].first_chunk().unwrap());
    Birth { number: small(0), pid: small(4), at: Duration::from_nanos(at) }
}

fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn is_child(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The kernel cuts names to 15 characters; a zombie has ended.
    name.contains("(pinfold-bench-c)") && !name.contains(") Z ")
        || name.contains("(run)") && !name.contains(") Z ")
}

/// Starts a command, and reaps it when it ends.
pub(crate) fn launch(command: &mut Command) {
    let mut child = command.spawn().unwrap_or_else(|error| fail(&format!("{command:?}: {error}")));
    std::thread::spawn(move || child.wait());
}

/// Kills a process that this run started.
pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        _ = kill_process(pid, Signal::KILL);
    }
}

/// Asks again and again until there is an answer, or patience runs out.
pub(crate) fn wait_for<T>(glance: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        std::thread::sleep(glance);
    }
    None
}

/// Returns the time of the clock that children record.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Stops everything with a reason, if a measurement cannot be made.
#[expect(clippy::panic, reason = "there is nobody to hand an error to")]
pub(crate) fn fail(why: &str) -> ! {
    panic!("{why}")
}
