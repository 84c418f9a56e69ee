//! Looks through `/proc` for processes: who has a lock file open, who carries a run's marker, who works where.
//!
//! Nothing here takes a lock, starts a program or waits. A process that may not be examined is passed over.

use crate::directory::Mode;
use crate::file_name::FileName;
use crate::process::{parse_parent, proc_is_ours, proc_path};
use crate::raw;
use crate::record::{LOCK_RUNS_VARIABLE, RUN_VARIABLE, Run};
use crate::resource::FileId;
use pinfold_kernel::sys;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One descriptor of a process on a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) pid: u32,
    /// Where the descriptor can be opened again, even when the file was removed.
    pub(crate) through: PathBuf,
    pub(crate) name: FileName,
    pub(crate) file: FileId,
    pub(crate) locked: Option<Mode>,
    /// It has no name any more.
    pub(crate) removed: bool,
    pub(crate) owner: u32,
    /// The mount that it was opened through, by the number that the kernel gives it in all namespaces.
    pub(crate) mount: Option<u64>,
}

/// What an errno says about a process that is being looked at: gone or closed is passed over, while trouble
/// of our own (`EMFILE`, `EIO`) must not pass for "nobody there".
fn seen<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// All pids that `/proc` shows; none when it shows another namespace.
pub(crate) fn pids() -> Result<Vec<u32>, Errno> {
    if !proc_is_ours()? {
        return Ok(Vec::new());
    }
    numbers(Path::new("/proc"))
}

fn numbers(path: &Path) -> Result<Vec<u32>, Errno> {
    let names = seen(sys::list(path))?.unwrap_or_default();
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Every descriptor on a file of `device` that is named like a lock file.
pub(crate) fn open_files(device: u64) -> Result<Vec<Open>, Errno> {
    let mut found = Vec::new();
    for pid in pids()? {
        found.extend(open_files_of(pid, device)?);
    }
    Ok(found)
}

/// The descriptors of one process, also of threads that have a table of their own.
pub(crate) fn open_files_of(pid: u32, device: u64) -> Result<Vec<Open>, Errno> {
    let mut found = open_files_in(pid, &proc_path(pid, "fd"), &proc_path(pid, "fdinfo"), device)?;
    for thread in numbers(&proc_path(pid, "task"))? {
        if thread != pid && !raw::same_files(pid, thread) {
            let fd = proc_path(pid, &format!("task/{thread}/fd"));
            let fdinfo = proc_path(pid, &format!("task/{thread}/fdinfo"));
            found.extend(open_files_in(pid, &fd, &fdinfo, device)?);
        }
    }
    Ok(found)
}

fn open_files_in(pid: u32, fd: &Path, fdinfo: &Path, device: u64) -> Result<Vec<Open>, Errno> {
    let mut found = Vec::new();
    for number in numbers(fd)? {
        let through = fd.join(number.to_string());
        let link = match sys::read_link(&through) {
            // Not ours to examine: neither are its other descriptors.
            Err(Errno::ACCESS | Errno::PERM) => break,
            other => seen(other)?,
        };
        let Some(link) = link else { continue };
        let Some(name) = lock_name(&link) else { continue };
        let Some(stat) = seen(sys::stat_at(CWD, &through, AtFlags::empty()))? else { continue };
        if stat.st_dev == device {
            let text = seen(sys::read_file(&fdinfo.join(number.to_string())))?;
            let (locked, mount) = text.map_or((None, None), |text| (locked(&text), mount(&text)));
            let (file, owner, removed) = (FileId::from(&stat), stat.st_uid, stat.st_nlink == 0);
            found.push(Open { pid, through, name, file, locked, removed, owner, mount });
        }
    }
    Ok(found)
}

/// Who took the exclusive flocks that are held now, by the inodes of the files. Who took one may have given it on since,
/// and ended. A look takes the same few milliseconds whoever else runs. The device is left out: some file systems show
/// another one elsewhere.
pub(crate) type Flocked = HashMap<u64, Vec<u32>>;

pub(crate) fn flocked() -> Result<Flocked, Errno> {
    let text = sys::read_file(Path::new("/proc/locks"))?;
    let mut flocked = Flocked::new();
    for (inode, taker) in String::from_utf8_lossy(&text).lines().filter_map(flocked_in) {
        flocked.entry(inode).or_default().push(taker);
    }
    Ok(flocked)
}

/// The inodes of all files for whose flock somebody waits.
pub(crate) fn awaited() -> Result<HashSet<u64>, Errno> {
    let text = sys::read_file(Path::new("/proc/locks"))?;
    let text = String::from_utf8_lossy(&text);
    let waiting = text.lines().filter_map(|line| line.split_once("-> FLOCK"));
    Ok(waiting.filter_map(|(_, rest)| inode_in(rest.split_ascii_whitespace().nth(3)?)).collect())
}

fn inode_in(file: &str) -> Option<u64> {
    file.rsplit(':').next()?.parse().ok()
}

/// `12: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; who waits has an arrow before its kind.
fn flocked_in(line: &str) -> Option<(u64, u32)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (kind, _, mode, taker, file) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let exclusive = kind == "FLOCK" && mode == "WRITE";
    // One of a namespace that is not seen from here has no number.
    let taker = taker.parse().unwrap_or(0);
    inode_in(file).filter(|_| exclusive).map(|inode| (inode, taker))
}

fn lock_name(link: &Path) -> Option<FileName> {
    let name = link.file_name()?.to_str()?;
    FileName::read(name.strip_suffix(" (deleted)").unwrap_or(name))
}

/// The mount that a descriptor's fdinfo names.
pub(crate) fn mount(fdinfo: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// The flock that a descriptor's fdinfo shows.
pub(crate) fn locked(fdinfo: &[u8]) -> Option<Mode> {
    let text = std::str::from_utf8(fdinfo).ok()?;
    text.lines().filter(|line| line.starts_with("lock:")).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "FLOCK").skip(2);
        match words.next()? {
            "WRITE" => Some(Mode::Exclusive),
            "READ" => Some(Mode::Shared),
            _ => None,
        }
    })
}

/// The processes, other than the caller, whose environment names `run`.
pub(crate) fn marked(run: &Run) -> Result<Vec<u32>, Errno> {
    let own = std::process::id();
    let mut found = Vec::new();
    for pid in pids()? {
        if pid != own && is_marked(pid, run)? {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Whether a process carries the marker of `run`.
pub(crate) fn is_marked(pid: u32, run: &Run) -> Result<bool, Errno> {
    Ok(seen(sys::read_file(&proc_path(pid, "environ")))?.is_some_and(|environ| names_run(&environ, run)))
}

fn names_run(environ: &[u8], run: &Run) -> bool {
    environ.split(|byte| *byte == 0).any(|entry| {
        let Some(at) = entry.iter().position(|byte| *byte == b'=') else { return false };
        let (name, value) = (&entry[..at], &entry[at + 1..]);
        let mut runs = value.split(|byte| *byte == b':');
        match name {
            _ if name == RUN_VARIABLE.as_bytes() => value == run.as_str().as_bytes(),
            _ if name == LOCK_RUNS_VARIABLE.as_bytes() => runs.any(|one| one == run.as_str().as_bytes()),
            _ => false,
        }
    })
}

/// The command line of a process, for people; its name in brackets when there is none.
#[must_use]
pub(crate) fn command(pid: u32) -> String {
    let words = sys::read_file(&proc_path(pid, "cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    if !words.is_empty() {
        return words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
    }
    // One that has gone has no name any more.
    let Ok(name) = sys::read_file(&proc_path(pid, "comm")) else { return String::new() };
    format!("[{}]", String::from_utf8_lossy(&name).trim_end())
}

/// The user that a process is, where it is the same one for every purpose.
pub(crate) fn user(pid: u32) -> Option<u32> {
    user_in(&sys::read_file(&proc_path(pid, "status")).ok()?)
}

fn user_in(status: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(status);
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let users: BTreeSet<u32> = line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    if users.len() == 1 { users.first().copied() } else { None }
}

/// The processes whose working directory is `directory` or below it.
pub(crate) fn working_in(directory: &Path) -> Vec<(u32, PathBuf)> {
    let places = pids()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|pid| Some((pid, sys::read_link(&proc_path(pid, "cwd")).ok()?)));
    places
        .filter(|(_, place)| {
            place.as_os_str().as_bytes().first() == Some(&b'/') && place.starts_with(directory)
        })
        .collect()
}

/// The descendants of one process, found from it downwards; nobody else is looked at.
pub(crate) fn below(pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut next = vec![pid];
    while let Some(pid) = next.pop() {
        for thread in numbers(&proc_path(pid, "task")).unwrap_or_default() {
            let text =
                sys::read_file(&proc_path(pid, &format!("task/{thread}/children"))).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let children = text.split_ascii_whitespace().filter_map(|word| word.parse().ok());
            next.extend(children.filter(|child| found.insert(*child)));
        }
    }
    found
}

/// A process, its parent, the parent of that, and so on.
pub(crate) fn lineage(pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let stat = sys::read_file(&proc_path(*pid, "stat")).ok()?;
        parse_parent(&stat).filter(|parent| *parent > 0)
    };
    // No chain is longer; a longer one is a race with pids that are used again.
    std::iter::successors(Some(pid), parent).take(4096).collect()
}

/// The descendants of some processes, by the parents that `/proc` shows now.
pub(crate) fn descendants(roots: &[u32]) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in pids().unwrap_or_default() {
        if let Some(parent) =
            sys::read_file(&proc_path(pid, "stat")).ok().and_then(|stat| parse_parent(&stat))
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: Vec<u32> = Vec::new();
    let mut next: Vec<u32> = roots.to_vec();
    while let Some(pid) = next.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if !found.contains(child) {
                found.push(*child);
                next.push(*child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdinfo_tells_a_flock_from_other_locks() {
        let head = "pos:\t0\nflags:\t02100000\nmnt_id:\t29\nino:\t1234\n";
        let rows = [
            ("lock:\t1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF\n", Some(Mode::Exclusive)),
            ("lock:\t1: FLOCK  ADVISORY  READ  4711 fe:00:1234 0 EOF\n", Some(Mode::Shared)),
            ("lock:\t1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 0 EOF\n", None),
            (
                "lock:\t1: OFDLCK ADVISORY  READ -1 fe:00:1 0 EOF\nlock:\t2: FLOCK ADVISORY READ 1 a:b:1 0 EOF\n",
                Some(Mode::Shared),
            ),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(locked(format!("{head}{line}").as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn only_exclusive_flocks_that_are_held_count() {
        let rows = [
            ("1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", Some((1234, 4711))),
            ("1: FLOCK  ADVISORY  WRITE -1 fe:00:1234 0 EOF", Some((1234, 0))),
            ("1: -> FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", None),
            ("2: FLOCK  ADVISORY  READ  4711 fe:00:1234 0 EOF", None),
            ("3: POSIX  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", None),
            ("3: FLOCK  ADVISORY  WRITE", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(flocked_in(line), expected, "{line}");
        }
    }

    #[test]
    fn a_process_that_changes_its_user_is_nobodys() {
        let rows = [
            ("Name:\tUid:\t7\nUid:\t12\t12\t12\t12\n", Some(12)),
            ("Uid:\t12\t0\t0\t0\n", None),
            ("Gid:\t12\t12\t12\t12\n", None),
        ];
        for (status, expected) in rows {
            assert_eq!(user_in(status.as_bytes()), expected, "{status}");
        }
    }

    #[test]
    fn a_marker_is_a_whole_entry_of_the_environment() {
        let run = Run::new("r1").unwrap();
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
    fn fdinfo_tells_the_mount() {
        assert_eq!(mount(b"pos:\t0\nflags:\t02100000\nmnt_id:\t29\nino:\t1234\n"), Some(29));
        assert_eq!(mount(b"pos:\t0\nmnt_id:\tx\n"), None);
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
