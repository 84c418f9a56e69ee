//! Plain kernel calls, so that tests can make any of them fail (see [`crate::fault`]).
//!
//! `EINTR` is retried and short reads and writes are continued here, so callers need not think of them. Every
//! descriptor is opened `O_CLOEXEC`.

use crate::clock::timespec;
use crate::fault::{FaultVerdict, pass};
use rustix::event::{EventfdFlags, PollFd};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir, Stat, StatFs, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of a kernel call.
pub type Result<T> = std::result::Result<T, Errno>;

fn again<T>(operation: &'static str, mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match pass(operation).and_then(|_| call()) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Opens a file by its name in a directory.
pub fn open_at(dir: impl AsFd, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    again("open", || rustix::fs::openat(dir.as_fd(), name, flags, mode))
}

/// Opens a file by its path.
pub fn open(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    open_at(rustix::fs::CWD, path, flags, Mode::empty())
}

/// Closes a descriptor and returns whether that succeeded; the descriptor is gone either way.
pub fn close(fd: OwnedFd) -> Result<()> {
    drop(fd);
    match pass("close") {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Locks without retrying `EINTR`, for a lock that may block: the waiting thread is ended by a signal.
pub fn flock_once(fd: impl AsFd, operation: FlockOperation) -> Result<()> {
    pass("flock").and_then(|_| rustix::fs::flock(fd.as_fd(), operation))
}

/// Locks or unlocks, and retries `EINTR`.
pub fn flock(fd: impl AsFd, operation: FlockOperation) -> Result<()> {
    again("flock", || rustix::fs::flock(fd.as_fd(), operation))
}

/// Returns everything about an open file.
pub fn fstat(fd: impl AsFd) -> Result<Stat> {
    again("fstat", || rustix::fs::fstat(fd.as_fd()))
}

/// Returns type, size and identity of an open file but no times: on a kernel with multigrain timestamps,
/// every write after a look at the times costs ten times as much.
pub fn fstat_timeless(fd: impl AsFd) -> Result<Statx> {
    let mask = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE | StatxFlags::NLINK;
    again("fstat", || rustix::fs::statx(fd.as_fd(), c"", AtFlags::EMPTY_PATH, mask))
}

/// Returns everything about a file, by its name in a directory.
pub fn stat_at(dir: impl AsFd, name: &Path, flags: AtFlags) -> Result<Stat> {
    again("stat", || rustix::fs::statat(dir.as_fd(), name, flags))
}

/// Returns everything about the file at a path; a link is not followed.
pub fn statx(path: &Path) -> Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    again("statx", || rustix::fs::statx(rustix::fs::CWD, path, flags, StatxFlags::BASIC_STATS))
}

/// Returns the file system of an open file.
pub fn fstatfs(fd: impl AsFd) -> Result<StatFs> {
    again("statfs", || rustix::fs::fstatfs(fd.as_fd()))
}

/// Creates a directory that only its owner may use.
pub fn make_dir(path: &Path) -> Result<()> {
    again("mkdir", || rustix::fs::mkdir(path, Mode::RWXU))
}

/// Removes a file by its name in a directory.
pub fn remove_file_at(dir: impl AsFd, name: &Path) -> Result<()> {
    again("unlink", || rustix::fs::unlinkat(dir.as_fd(), name, AtFlags::empty()))
}

/// Removes an empty directory.
pub fn remove_dir(path: &Path) -> Result<()> {
    again("rmdir", || rustix::fs::rmdir(path))
}

/// Changes the permission bits of an open file.
pub fn change_mode(fd: impl AsFd, mode: Mode) -> Result<()> {
    again("chmod", || rustix::fs::fchmod(fd.as_fd(), mode))
}

/// Reads from `offset` until the buffer is full or the file ends; returns how many bytes were read.
pub fn read_at(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        match again("read", || rustix::io::pread(fd.as_fd(), &mut *rest, offset + done as u64))? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// Writes all of `bytes` at `offset`.
pub fn write_at(fd: impl AsFd, bytes: &[u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        done += written(rest, |part| rustix::io::pwrite(fd.as_fd(), part, offset + done as u64))?;
    }
    Ok(())
}

/// Appends `bytes` with as few writes as the kernel allows; returns an error only if nothing more can be done.
pub fn append(fd: impl AsFd, bytes: &[u8]) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        done += written(&bytes[done..], |part| rustix::io::write(fd.as_fd(), part))?;
    }
    Ok(())
}

fn written(bytes: &[u8], mut call: impl FnMut(&[u8]) -> Result<usize>) -> Result<usize> {
    loop {
        let part = match pass("write") {
            Ok(FaultVerdict::Whole) => call(bytes),
            Ok(FaultVerdict::Short) => call(&bytes[..1]),
            Err(errno) => Err(errno),
        };
        match part {
            Err(Errno::INTR) => {}
            // A kernel that writes nothing and reports nothing would be asked forever.
            Ok(0) => return Err(Errno::IO),
            other => return other,
        }
    }
}

/// Makes what was written reach the disk.
pub fn sync(fd: impl AsFd) -> Result<()> {
    again("fdatasync", || rustix::fs::fdatasync(fd.as_fd()))
}

/// Reads a whole file of unknown size, such as those in `/proc`.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    let fd = open(path, OFlags::RDONLY)?;
    read_all(&fd)
}

/// Reads a whole open file of unknown size.
pub fn read_all(fd: impl AsFd) -> Result<Vec<u8>> {
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    loop {
        length += read_at(fd.as_fd(), &mut bytes[length..], length as u64)?;
        if length < bytes.len() {
            bytes.truncate(length);
            return Ok(bytes);
        }
        bytes.resize(length * 2, 0);
    }
}

/// Returns where a symbolic link leads.
pub fn read_link(path: &Path) -> Result<PathBuf> {
    let bytes = again("readlink", || rustix::fs::readlink(path, Vec::new()))?;
    Ok(PathBuf::from(OsString::from_vec(bytes.into_bytes())))
}

/// Returns the names in a directory, without `.` and `..`.
pub fn list(path: &Path) -> Result<Vec<OsString>> {
    Ok(list_with_inodes(path)?.into_iter().map(|(name, _)| name).collect())
}

/// Returns the names in a directory with their inodes, without `.` and `..`.
pub fn list_with_inodes(path: &Path) -> Result<Vec<(OsString, u64)>> {
    let fd = open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
    again("readdir", || Ok(()))?;
    let mut space = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(&fd, &mut space);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push((OsString::from_vec(name), entry.ino()));
        }
    }
    Ok(names)
}

/// Creates a descriptor that becomes readable once it is raised.
pub fn event() -> Result<OwnedFd> {
    again("eventfd", || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))
}

/// Raises an event descriptor; it stays readable. Not a file operation, so no fault strikes it.
pub fn raise(event: impl AsFd) {
    // It fails only if its counter is full, and then it is already readable.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

/// Waits until one of `fds` is readable; returns how many are, or zero when the time is up.
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<usize> {
    let timeout = timeout.map(timespec);
    pass("poll")?;
    rustix::event::poll(fds, timeout.as_ref())
}

/// Opens a descriptor for the process that has this pid now.
pub fn pidfd(pid: u32) -> Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    again("pidfd_open", || rustix::process::pidfd_open(pid, PidfdFlags::empty()))
}

/// Sends a signal to the process that a descriptor stands for.
pub fn signal(pidfd: BorrowedFd<'_>, signal: Signal) -> Result<()> {
    again("pidfd_send_signal", || rustix::process::pidfd_send_signal(pidfd, signal))
}

/// Truncates a data file to where a failed append began. Never called on a lock file.
pub fn cut(fd: impl AsFd, length: u64) -> Result<()> {
    again("ftruncate", || rustix::fs::ftruncate(fd.as_fd(), length))
}

/// Returns the error of the last call through the C library.
pub(crate) fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}
