//! Searches `/proc` for processes that have a lock file open, carry a run's marker, or work in a directory.
//!
//! Nothing here takes a lock, starts a program or waits. A process that may not be examined is skipped.

use crate::files::name::FileName;
use crate::files::record::{LOCK_RUNS_VARIABLE, RUN_VARIABLE, RunName};
use crate::resource::FileId;
use crate::want::directory::LockMode;
use pinfold_kernel::proc::fdinfo::{self, Flock};
use pinfold_kernel::proc::{self, environ, numbers, seen};
use pinfold_kernel::sys;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// One descriptor of a process on a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenFile {
    pub(crate) pid: u32,
    /// The path through which the file can be opened again, even if it was removed.
    pub(crate) through: PathBuf,
    pub(crate) name: FileName,
    pub(crate) file: FileId,
    pub(crate) locked: Option<LockMode>,
    /// The file no longer has a name.
    pub(crate) removed: bool,
    pub(crate) owner: u32,
    /// The mount it was opened through, by the kernel's number for it, which is the same in all namespaces.
    pub(crate) mount: Option<u64>,
}

/// Returns every descriptor on a file of `device` that is named like a lock file.
pub(crate) fn open_files(device: u64) -> Result<Vec<OpenFile>, Errno> {
    let mut found = Vec::new();
    for pid in proc::pids()? {
        found.extend(open_files_of(pid, device)?);
    }
    Ok(found)
}

/// Returns the descriptors of one process, including threads that have their own table.
pub(crate) fn open_files_of(pid: u32, device: u64) -> Result<Vec<OpenFile>, Errno> {
    let mut found = open_files_in(pid, &proc::path(pid, "fd"), &proc::path(pid, "fdinfo"), device)?;
    for thread in numbers(&proc::path(pid, "task"))? {
        if thread != pid && !fdinfo::same_table(pid, thread) {
            let fd = proc::path(pid, &format!("task/{thread}/fd"));
            let fdinfo = proc::path(pid, &format!("task/{thread}/fdinfo"));
            found.extend(open_files_in(pid, &fd, &fdinfo, device)?);
        }
    }
    Ok(found)
}

fn open_files_in(pid: u32, fd: &Path, fdinfo: &Path, device: u64) -> Result<Vec<OpenFile>, Errno> {
    let mut found = Vec::new();
    for number in numbers(fd)? {
        let through = fd.join(number.to_string());
        let link = match sys::read_link(&through) {
            // Not ours to examine, and neither are its other descriptors.
            Err(Errno::ACCESS | Errno::PERM) => break,
            other => seen(other)?,
        };
        let Some(link) = link else { continue };
        let Some(name) = lock_name(&link) else { continue };
        let Some(stat) = seen(sys::stat_at(CWD, &through, AtFlags::empty()))? else { continue };
        if stat.st_dev == device {
            let text = seen(sys::read_file(&fdinfo.join(number.to_string())))?;
            let (locked, mount) = text.map_or((None, None), |text| (locked(&text), fdinfo::mount(&text)));
            let (file, owner, removed) = (FileId::from(&stat), stat.st_uid, stat.st_nlink == 0);
            found.push(OpenFile { pid, through, name, file, locked, removed, owner, mount });
        }
    }
    Ok(found)
}

/// Returns the flock that a descriptor's fdinfo shows.
pub(crate) fn locked(fdinfo: &[u8]) -> Option<LockMode> {
    fdinfo::flock(fdinfo).map(|flock| match flock {
        Flock::Exclusive => LockMode::Exclusive,
        Flock::Shared => LockMode::Shared,
    })
}

fn lock_name(link: &Path) -> Option<FileName> {
    let name = link.file_name()?.to_str()?;
    FileName::read(name.strip_suffix(" (deleted)").unwrap_or(name))
}

/// Returns the processes, other than the caller, whose environment names `run`.
pub(crate) fn marked(run: &RunName) -> Result<Vec<u32>, Errno> {
    let own = std::process::id();
    let mut found = Vec::new();
    for pid in proc::pids()? {
        if pid != own && is_marked(pid, run)? {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Whether a process carries the marker of `run`.
pub(crate) fn is_marked(pid: u32, run: &RunName) -> Result<bool, Errno> {
    Ok(environ::read(pid)?.is_some_and(|environ| names_run(&environ, run)))
}

fn names_run(environ: &[u8], run: &RunName) -> bool {
    let run = run.as_str().as_bytes();
    environ::variables(environ).any(|(name, value)| match name {
        _ if name == RUN_VARIABLE.as_bytes() => value == run,
        _ if name == LOCK_RUNS_VARIABLE.as_bytes() => value.split(|byte| *byte == b':').any(|one| one == run),
        _ => false,
    })
}

/// Returns the user of a process, if it is the same for every purpose.
pub(crate) fn user(pid: u32) -> Option<u32> {
    let users = proc::status::users(pid)?;
    users.iter().all(|user| *user == users[0]).then_some(users[0])
}

/// Returns the processes whose working directory is `directory` or below it.
pub(crate) fn working_in(directory: &Path) -> Vec<(u32, PathBuf)> {
    let pids = proc::pids().unwrap_or_default().into_iter();
    let places = pids.filter_map(|pid| Some((pid, proc::working_directory(pid)?)));
    places.filter(|(_, place)| place.starts_with(directory)).collect()
}

/// Returns these processes and all below them; only these if `/proc` shows another namespace.
pub(crate) fn with_descendants(roots: Vec<u32>) -> Vec<u32> {
    if proc::is_ours() == Ok(true) { proc::tree::with_descendants(roots) } else { roots }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_a_whole_entry_of_the_environment() {
        let run = RunName::new("r1").unwrap();
        let rows: [(&[u8], bool); 8] = [
            (b"A=1\0PINFOLD_RUN=r1\0", true),
            (b"PINFOLD_RUN=r1", true),
            (b"PINFOLD_RUN=r12\0", false),
            (b"XPINFOLD_RUN=r1\0", false),
            (b"A=PINFOLD_RUN=r1\0", false),
            (b"PINFOLD_LOCK_RUNS=r0:r1\0", true),
            (b"PINFOLD_LOCK_RUNS=r0:r11\0", false),
            (b"", false),
        ];
        for (environ, expected) in rows {
            assert_eq!(names_run(environ, &run), expected, "{}", String::from_utf8_lossy(environ));
        }
    }

    #[test]
    fn links_to_lock_files_are_recognised_also_when_removed() {
        let name = FileName::of_key("k");
        let path = format!("/x/locks/{}", name.as_str());
        assert_eq!(lock_name(Path::new(&path)), Some(name));
        assert_eq!(lock_name(Path::new(&format!("{path} (deleted)"))), Some(name));
        for other in ["socket:[12]", "/x/other", "/x/k-xyz", "/x/ledger"] {
            assert_eq!(lock_name(Path::new(other)), None, "{other}");
        }
    }
}
