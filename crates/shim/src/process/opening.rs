//! Becomes a shim: alone in its session, reaper of its tree, holding the locks and listening.

use super::daemons::{DaemonLink, Links, Origin};
use super::notify::Notify;
use super::process_title::Title;
use super::shim::{Phase, Shim};
use super::viewer::Viewers;
use crate::crash;
use crate::files::log::Log;
use crate::files::record::Records;
use crate::protocol::command::Command;
use crate::protocol::frame::{Decoder, FrameError};
use crate::protocol::keep::{Keep, Listens, Streams};
use crate::protocol::report::Report;
use crate::protocol::start::LogLimits;
use pinfold_kernel::own;
use pinfold_kernel::signals::{self, SignalFd};
use pinfold_kernel::socket;
use pinfold_lock::{AdoptError, Folder, FolderError, Guard};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Why a shim could not begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShimOpenError {
    #[error("the daemon did not say what to keep")]
    Nobody,
    #[error("what to keep was not understood")]
    Frame(#[from] FrameError),
    #[error("the description of a lock was not understood")]
    Description(#[from] serde_json::Error),
    #[error("a lock folder cannot be used")]
    Folder(#[from] FolderError),
    #[error("a lock was not handed over")]
    Adopt(#[from] AdoptError),
    #[error("the standard streams of agents were not handed over")]
    Streams,
    #[error("the kernel refused")]
    Kernel(#[from] Errno),
}

/// Opens the shim; `title` is the part of the command line that a forked shim may write its name to.
pub(super) fn open(title: Option<&Title>) -> Result<Shim, ShimOpenError> {
    pinfold_kernel::allocator::return_long_buffers();
    own::close_from(3);
    let first = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let umask = settle_down()?;
    let mut decoder = Decoder::default();
    let mut descriptors = Vec::new();
    let keep = receive(&first, &mut decoder, &mut descriptors)?;
    if let Some(title) = title {
        title.write(keep.session.as_bytes());
    }
    crash::point("keep.received");
    let mut descriptors = descriptors.into_iter();
    let guards = adopt(&keep, &mut descriptors)?;
    let streams = given_streams(&keep, descriptors)?;
    crash::point("keep.adopted");
    let signals = SignalFd::take(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
    let records = Records::open(&keep.records)?;
    let log = Log::open(&keep.log, LogLimits::default());
    rustix::io::ioctl_fionbio(&first, true)?;
    let mut links = Links::new(DaemonLink::new(first, decoder, Origin::Parent));
    if keep.listens == Listens::AtOnce {
        links.listen(&keep)?;
    }
    crash::point("keep.listening");
    hush()?;
    Ok(Shim {
        keep,
        guards,
        streams,
        records,
        log,
        tape: None,
        links,
        viewers: Viewers::default(),
        notify: Notify::open()?,
        umask,
        phase: Phase::Waiting,
        spare: None,
        signals,
        last: false,
        settle: None,
        unstored: None,
        buffer: Vec::new(),
    })
}

/// Tells the process that started us what was wrong; nothing else will be said.
pub(super) fn say_why(error: &ShimOpenError) {
    let (mut errno, mut text) = (None, error.to_string());
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        errno = errno_of(next).or(errno);
        text = format!("{text}: {next}");
        cause = next.source();
    }
    let mut frame = Vec::new();
    Report::CannotKeep { errno, text }.encode(&mut frame);
    // The other end may be gone.
    let _ = rustix::net::send(rustix::stdio::stdin(), &frame, rustix::net::SendFlags::NOSIGNAL);
}

fn errno_of(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let own = error.downcast_ref::<Errno>().map(|errno| errno.raw_os_error());
    own.or_else(|| error.downcast_ref::<std::io::Error>()?.raw_os_error())
}

/// Drops everything inherited from the process that started us; returns the umask, which agents get back.
fn settle_down() -> Result<Mode, Errno> {
    signals::reset();
    signals::ignore(libc::SIGPIPE);
    // It fails only for a group leader, which is alone already.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/")?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::thread::set_name(c"pinfold-shim")?;
    Ok(rustix::process::umask(Mode::RWXG | Mode::RWXO))
}

fn hush() -> Result<(), Errno> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)
}

fn receive(
    first: &OwnedFd,
    decoder: &mut Decoder,
    descriptors: &mut Vec<OwnedFd>,
) -> Result<Keep, ShimOpenError> {
    let mut bytes = [0; 4096];
    loop {
        while let Some(frame) = decoder.frame()? {
            if let Some(Command::Keep(keep)) = Command::decode(&frame)? {
                return Ok(*keep);
            }
        }
        match socket::receive_with(first, &mut bytes, descriptors) {
            Ok(0) | Err(Errno::NOTSOCK) => return Err(ShimOpenError::Nobody),
            Ok(count) => decoder.feed(&bytes[..count]),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Takes the standard streams that came after the locks.
fn given_streams(
    keep: &Keep,
    descriptors: impl Iterator<Item = OwnedFd>,
) -> Result<Option<[OwnedFd; 3]>, ShimOpenError> {
    match keep.streams {
        Streams::Kept => Ok(None),
        Streams::Given => {
            let came: Vec<OwnedFd> = descriptors.collect();
            came.try_into().map(Some).map_err(|_| ShimOpenError::Streams)
        }
    }
}

fn adopt(keep: &Keep, descriptors: &mut impl Iterator<Item = OwnedFd>) -> Result<Vec<Guard>, ShimOpenError> {
    let mut folders: Vec<(PathBuf, Folder)> = Vec::new();
    let mut guards = Vec::with_capacity(keep.locks.len());
    for lock in &keep.locks {
        let known = folders.iter().find(|(path, _)| *path == lock.folder).map(|(_, folder)| folder.clone());
        let folder = match known {
            Some(folder) => folder,
            None => Folder::open(&lock.folder)?,
        };
        folders.push((lock.folder.clone(), folder.clone()));
        let description = serde_json::from_slice(&lock.description)?;
        let own = descriptors.take(lock.descriptors).collect();
        guards.push(Guard::adopt(&folder, description, own)?);
    }
    Ok(guards)
}
