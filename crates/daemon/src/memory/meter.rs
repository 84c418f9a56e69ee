//! Reads the memory of one run: from the counters of its control group if it has one that counts memory, else
//! by adding up its processes. Once a process was seen outside the group, whichever is larger.
//!
//! Files that are read again and again stay open, and share one buffer: a reading costs about 10 µs.

use super::Without;
use super::membership::GroupMembership;
use pinfold_core::rules::memory::{Reading, ReadingSource};
use pinfold_kernel::cgroup::{self, Hierarchy};
use pinfold_kernel::proc::memory;
use pinfold_shim::groups;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// How many files of processes stay open for a run; larger trees open the rest each time.
const KEPT_OPEN: usize = 8;
/// How deep groups below a run's own are followed.
const DEEPEST: usize = 16;

/// The processes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The agent itself.
    pub agent: u32,
    /// The shim that keeps it: everything below it belongs to the run. Without one, everything below the
    /// agent.
    pub shim: Option<u32>,
}

/// One reading of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterReading {
    /// How much memory it uses.
    pub reading: Reading,
    /// How it was measured.
    pub source: ReadingSource,
    /// Its swap in bytes; only reported, never judged.
    pub swap: u64,
}

/// Reads one run.
#[derive(Debug)]
pub struct Meter {
    subject: Subject,
    without: Without,
    /// The counters of its control group.
    counters: Option<OwnedFd>,
    /// Its control group, which lists its processes.
    group: Option<PathBuf>,
    /// Whether all of the run is in the group that is read.
    membership: GroupMembership,
    /// The status files of its processes, by pid.
    open: Vec<(u32, OwnedFd)>,
}

/// Buffers that every reading needs for a moment: one set for all runs.
#[derive(Debug, Default)]
pub struct MeterBuffers {
    buffer: Vec<u8>,
    pids: Vec<u32>,
    path: String,
}

impl Meter {
    /// Finds out how a run can be read.
    #[must_use]
    pub fn new(subject: Subject, without: Without) -> Meter {
        let second = own_group(subject, Hierarchy::Second).filter(|_| !without.cgroup);
        let of_second = || second.clone().map(|group| (Hierarchy::Second, group));
        let memory = own_group(subject, Hierarchy::Memory).map(|group| (Hierarchy::Memory, group));
        let memory = memory.or_else(of_second).filter(|_| !without.memory_cgroup);
        let counters = memory.as_ref().and_then(|(_, group)| open(&group.join("memory.stat")));
        let read = if counters.is_some() { memory } else { of_second() };
        let membership = GroupMembership::new(subject.shim, read);
        Meter { subject, without, counters, group: second, membership, open: Vec::new() }
    }

    /// Reads it, as cheaply as possible.
    pub fn read(&mut self, scratch: &mut MeterBuffers) -> MeterReading {
        self.membership.look();
        let counted = self.counted(scratch);
        match counted {
            Some(counted) if !self.membership.left => counted,
            Some(_) | None => {
                self.list(scratch);
                larger(counted, self.sum(scratch))
            }
        }
    }

    /// What its control group counts.
    fn counted(&self, scratch: &mut MeterBuffers) -> Option<MeterReading> {
        let bytes = read(self.counters.as_ref()?, &mut scratch.buffer).ok()?;
        let text = text(bytes);
        let reading = Reading::Bytes(memory::of_group(&text)?);
        Some(MeterReading { reading, source: ReadingSource::Cgroup, swap: swapped(&text) })
    }

    /// Reads it exactly: the proportional shares that its processes have of their memory. Takes milliseconds.
    ///
    /// If some process may not be read, the others still show whether they alone exceed a limit.
    pub fn confirm(&mut self, limit: u64, scratch: &mut MeterBuffers) -> MeterReading {
        self.list(scratch);
        let pids = std::mem::take(&mut scratch.pids);
        let (mut sum, mut unreadable) = (0_u64, false);
        for pid in &pids {
            match self.share(*pid, scratch) {
                Reading::Bytes(bytes) => sum = sum.saturating_add(bytes),
                Reading::Unknown => unreadable = true,
            }
        }
        scratch.pids = pids;
        let reading = if unreadable && sum < limit { Reading::Unknown } else { Reading::Bytes(sum) };
        MeterReading { reading, source: ReadingSource::Shares, swap: 0 }
    }

    fn share(&self, pid: u32, scratch: &mut MeterBuffers) -> Reading {
        if self.without.smaps_rollup {
            return Reading::Unknown;
        }
        set_path(&mut scratch.path, pid, "smaps_rollup");
        match open_file(Path::new(&scratch.path))
            .and_then(|file| read(&file, &mut scratch.buffer).map(parse_share))
        {
            Ok(reading) => reading,
            Err(errno) => gone_or_unknown(errno),
        }
    }

    /// Lists the processes of the run.
    fn list(&self, scratch: &mut MeterBuffers) {
        scratch.pids.clear();
        if let Some(group) = &self.group {
            list_group(group, &mut scratch.buffer, &mut scratch.pids, DEEPEST);
        }
        match self.subject.shim {
            Some(_) if self.group.is_some() && !self.membership.left => {}
            Some(shim) => scratch.pids.extend(pinfold_kernel::proc::tree::descendants(shim)),
            None => {
                scratch.pids.push(self.subject.agent);
                scratch.pids.extend(pinfold_kernel::proc::tree::descendants(self.subject.agent));
            }
        }
        scratch.pids.sort_unstable();
        scratch.pids.dedup();
    }

    fn sum(&mut self, scratch: &mut MeterBuffers) -> MeterReading {
        let pids = std::mem::take(&mut scratch.pids);
        self.open.retain(|(pid, _)| pids.binary_search(pid).is_ok());
        let (mut sum, mut swap) = (Reading::Bytes(0), 0_u64);
        for pid in &pids {
            let (one, swapped) = self.one(*pid, scratch);
            swap = swap.saturating_add(swapped);
            sum = match (sum, one) {
                (Reading::Bytes(sum), Reading::Bytes(bytes)) => Reading::Bytes(sum.saturating_add(bytes)),
                (Reading::Unknown, _) | (_, Reading::Unknown) => Reading::Unknown,
            };
        }
        scratch.pids = pids;
        MeterReading { reading: sum, source: ReadingSource::Sum, swap }
    }

    /// The memory and the swap of one process. A process that has ended has none.
    fn one(&mut self, pid: u32, scratch: &mut MeterBuffers) -> (Reading, u64) {
        if let Ok(index) = self.open.binary_search_by_key(&pid, |(pid, _)| *pid) {
            if let Ok(bytes) = read(&self.open[index].1, &mut scratch.buffer) {
                return both(bytes);
            }
            // It has ended, and its pid may be another's by now.
            self.open.remove(index);
        }
        set_path(&mut scratch.path, pid, "status");
        let file = match open_file(Path::new(&scratch.path)) {
            Ok(file) => file,
            Err(errno) => return (gone_or_unknown(errno), 0),
        };
        let seen = match read(&file, &mut scratch.buffer) {
            Ok(bytes) => both(bytes),
            Err(errno) => return (gone_or_unknown(errno), 0),
        };
        if let (true, Err(index)) =
            (self.open.len() < KEPT_OPEN, self.open.binary_search_by_key(&pid, |(pid, _)| *pid))
        {
            self.open.insert(index, (pid, file));
        }
        seen
    }
}

/// The larger of what a group counts and what the processes have; an unknown value is not larger.
fn larger(counted: Option<MeterReading>, sum: MeterReading) -> MeterReading {
    match (counted.map(|counted| (counted, counted.reading)), sum.reading) {
        (Some((counted, Reading::Bytes(group))), Reading::Bytes(tree)) if group >= tree => counted,
        (Some((counted, _)), Reading::Unknown) => counted,
        (Some(_) | None, Reading::Bytes(_)) | (None, Reading::Unknown) => sum,
    }
}

/// The group made for the run alone: the shim is outside of it.
fn own_group(subject: Subject, hierarchy: Hierarchy) -> Option<PathBuf> {
    let group = cgroup::folder_of(Some(subject.agent), hierarchy)?;
    let ours = group.file_name()?.to_str()?.starts_with(groups::PREFIX);
    let beside = subject.shim.and_then(|shim| cgroup::folder_of(Some(shim), hierarchy));
    (ours && beside.is_some_and(|shim| shim != group)).then_some(group)
}

/// The processes of a group and of all groups below it.
fn list_group(group: &Path, buffer: &mut Vec<u8>, pids: &mut Vec<u32>, depth: usize) {
    let Some(file) = open(&group.join("cgroup.procs")) else { return };
    let Ok(bytes) = read(&file, buffer) else { return };
    pids.extend(text(bytes).lines().filter_map(|line| line.parse::<u32>().ok()));
    // A folder has two links and one more for each folder in it.
    let below = rustix::fs::stat(group).is_ok_and(|facts| facts.st_nlink > 2);
    if !below || depth == 0 {
        return;
    }
    let Ok(entries) = std::fs::read_dir(group) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        list_group(&entry.path(), buffer, pids, depth - 1);
    }
}

/// A process that is gone has no memory; one that may not be read is unknown.
fn gone_or_unknown(errno: Errno) -> Reading {
    match errno {
        Errno::NOENT | Errno::SRCH => Reading::Bytes(0),
        _ => Reading::Unknown,
    }
}

fn parse_share(bytes: &[u8]) -> Reading {
    memory::of_rollup(&text(bytes)).into()
}

fn both(bytes: &[u8]) -> (Reading, u64) {
    let text = text(bytes);
    (memory::of_status(&text).into(), memory::swapped(&text))
}

/// The swap of a group; the second hierarchy reports it elsewhere, where it is not read.
fn swapped(stat: &str) -> u64 {
    stat.lines().find_map(|line| line.strip_prefix("total_swap ")?.parse().ok()).unwrap_or(0)
}

/// Programs choose their names freely, even with bytes that are not UTF-8.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn set_path(path: &mut String, pid: u32, file: &str) {
    use std::fmt::Write;
    path.clear();
    // Writing to a string cannot fail.
    _ = write!(path, "/proc/{pid}/{file}");
}

fn open(path: &Path) -> Option<OwnedFd> {
    open_file(path).ok()
}

fn open_file(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// The whole of a small kernel file, from its beginning.
fn read<'a>(file: &OwnedFd, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Errno> {
    buffer.clear();
    loop {
        let offset = buffer.len() as u64;
        if buffer.spare_capacity_mut().len() < 1024 {
            buffer.reserve(8192);
        }
        match rustix::io::pread(file, rustix::buffer::spare_capacity(buffer), offset) {
            Ok(0) => return Ok(buffer),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_its_children_are_read_and_the_dead_have_nothing() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let subject = Subject { agent: std::process::id(), shim: None };
        let (mut meter, mut scratch) = (Meter::new(subject, Without::default()), MeterBuffers::default());
        let read = meter.read(&mut scratch);
        assert!(matches!(read.reading, Reading::Bytes(bytes) if bytes > 100_000), "{read:?}");
        assert!(scratch.pids.contains(&child.id()), "{:?}", scratch.pids);
        let exact = meter.confirm(u64::MAX, &mut scratch);
        assert!(matches!(exact.reading, Reading::Bytes(bytes) if bytes > 100_000), "{exact:?}");
        child.kill().unwrap();
        // A zombie has no memory, and is not an error.
        let mut zombie = Meter::new(Subject { agent: child.id(), shim: None }, Without::default());
        rustix::process::waitid(
            rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&child)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert_eq!(zombie.read(&mut scratch).reading, Reading::Bytes(0));
        assert_eq!(zombie.confirm(u64::MAX, &mut scratch).reading, Reading::Bytes(0));
        child.wait().unwrap();
        assert_eq!(zombie.read(&mut scratch).reading, Reading::Bytes(0));
        assert_eq!(zombie.confirm(u64::MAX, &mut scratch).reading, Reading::Bytes(0));
    }

    #[test]
    fn without_shares_nothing_is_confirmed() {
        let subject = Subject { agent: std::process::id(), shim: None };
        let mut meter = Meter::new(subject, Without { smaps_rollup: true, ..Without::default() });
        let mut scratch = MeterBuffers::default();
        assert_eq!(meter.confirm(u64::MAX, &mut scratch).reading, Reading::Unknown);
    }

    #[test]
    fn a_second_reading_uses_the_files_of_the_first() {
        let subject = Subject { agent: std::process::id(), shim: None };
        let (mut meter, mut scratch) = (Meter::new(subject, Without::default()), MeterBuffers::default());
        meter.read(&mut scratch);
        let open: Vec<u32> = meter.open.iter().map(|(pid, _)| *pid).collect();
        assert!(open.contains(&std::process::id()));
        assert!(matches!(meter.read(&mut scratch).reading, Reading::Bytes(_)));
    }
}
