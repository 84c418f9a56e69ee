//! Files in which the processes of an agent say which vendor session they are in and what they do there.
//!
//! A file outlives a process that was killed, and pids are reused: what a file says counts only while the
//! process that wrote it is alive, identified by its start time.

use crate::define::definition::Definition;
use crate::define::preset::{IdFile, IdFileKeys, LONGEST_ID_FILE, Preset};
use pinfold_kernel::proc::stat::Stat;
use pinfold_kernel::{proc, sys};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A half-written file is complete soon: it is read again this many times, after this pause.
pub(super) const TORN: (u32, Duration) = (5, Duration::from_millis(10));

/// Where such files are, and what their keys mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdFiles {
    pub(crate) folder: PathBuf,
    /// The parts of a file's name before and after the pid.
    pub(crate) around: (String, String),
    pub(crate) keys: IdFileKeys,
}

/// A process that has a vendor session and was not started by pinfold for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outsider {
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
    pub(crate) command: String,
    /// Where this was found.
    pub(crate) told_by: ToldBy,
}

/// Where it was found that a process has a vendor session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToldBy {
    /// In the file that the process keeps about itself.
    IdFile,
    /// In the roster of the vendor's daemon: the process is that daemon.
    Roster,
}

/// What was read of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdFileReading {
    /// It has no file, or only one left by another process.
    Absent,
    /// The file is incomplete: it is being written.
    Torn,
    /// The content of the file.
    Said(IdFile),
}

impl IdFiles {
    /// The id files of a session's agent, if its preset has them.
    pub(crate) fn of(definition: &Definition, preset: &Preset) -> Option<IdFiles> {
        let (folder, before, after) = preset.id_files()?;
        let store = preset.store.as_ref()?.folder(|name| definition.env.get(name))?;
        let around = (before.to_owned(), after.to_owned());
        Some(IdFiles { folder: Path::new(&store).join(folder), around, keys: preset.id_file_keys.clone() })
    }

    pub(crate) fn file_of(&self, pid: u32) -> PathBuf {
        let (before, after) = &self.around;
        self.folder.join(format!("{before}{pid}{after}"))
    }

    /// What the agent's file says, or that of the nearest process below it, and the pid of that process: the
    /// program may have a launcher above it. Blocks.
    pub(crate) fn of_agent(&self, agent: u32) -> io::Result<(u32, IdFileReading)> {
        match self.read(agent)? {
            IdFileReading::Absent => {}
            found @ (IdFileReading::Torn | IdFileReading::Said(_)) => return Ok((agent, found)),
        }
        let depth = |pid: &u32| proc::tree::lineage(*pid).position(|above| above == agent);
        let mut below: Vec<(usize, u32)> =
            self.pids()?.into_iter().filter_map(|pid| Some((depth(&pid)?, pid))).collect();
        below.sort_unstable();
        for (_, pid) in below {
            match self.read(pid)? {
                IdFileReading::Absent => {}
                found @ (IdFileReading::Torn | IdFileReading::Said(_)) => return Ok((pid, found)),
            }
        }
        Ok((agent, IdFileReading::Absent))
    }

    /// Every pid that has a file, alive or not.
    pub(super) fn pids(&self) -> io::Result<Vec<u32>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let (before, after) = &self.around;
        let pid = |name: &str| name.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?.parse().ok();
        let names = entries.map(|entry| Ok(entry?.file_name().to_str().and_then(pid)));
        names.filter_map(Result::transpose).collect()
    }

    /// What the file of a process says, if that process is alive.
    fn read(&self, pid: u32) -> io::Result<IdFileReading> {
        let text = match read_bounded(&self.file_of(pid), LONGEST_ID_FILE) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return Ok(IdFileReading::Absent),
            Err(error) => return Err(error),
        };
        let Some(started) = started(pid)? else { return Ok(IdFileReading::Absent) };
        match self.keys.read(&text) {
            None => Ok(IdFileReading::Torn),
            Some(said) if said.start_ticks == Some(started) => Ok(IdFileReading::Said(said)),
            // Another process had this pid, or nothing proves that it was this one.
            Some(_) => Ok(IdFileReading::Absent),
        }
    }

    /// As `read`, but waits for a file that is being written. One that stays incomplete counts as absent.
    pub(super) fn read_whole(&self, pid: u32) -> io::Result<Option<IdFile>> {
        for _ in 0..TORN.0 {
            match self.read(pid)? {
                IdFileReading::Absent => return Ok(None),
                IdFileReading::Said(said) => return Ok(Some(said)),
                IdFileReading::Torn => std::thread::sleep(TORN.1),
            }
        }
        Ok(None)
    }
}

/// When a process was started, according to `/proc`; `None` if it has ended.
pub(crate) fn started(pid: u32) -> io::Result<Option<u64>> {
    let line = proc::seen(sys::read_file(&proc::path(pid, "stat"))).map_err(io::Error::from)?;
    let Some(line) = line else { return Ok(None) };
    let stat = Stat::parse(&line).filter(|stat| !stat.has_ended());
    Ok(stat.and_then(|stat| stat.start_ticks()))
}

/// Reads a file of another program, up to a length.
pub(super) fn read_bounded(file: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    std::fs::File::open(file)?.take(longest).read_to_end(&mut text)?;
    Ok(text)
}

/// Whether an error says that there is no such file.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
