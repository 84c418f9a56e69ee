//! Waits for a program that is in a vendor session and took no lock: until it ends, or is in another session.

use super::Then;
use super::async_fd;
use super::cancellable_wait::CancellableWait;
use super::file_watch;
use crate::define::id_files::Outsider;
use crate::define::others::Others;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

impl CancellableWait for AbortHandle {
    fn cancel(&self) {
        self.abort();
    }
}

/// Reports when a program has ended or has left the session. The kernel tells of both.
pub(super) fn wait_for(
    others: Others,
    outsider: Outsider,
    then: Then<()>,
) -> io::Result<Box<dyn CancellableWait>> {
    let ended = pidfd(outsider.pid)?.map(async_fd::watch).transpose()?;
    let waiting = tokio::spawn(async move {
        if let Some(ended) = ended {
            gone(others, outsider, ended).await;
        }
        then(());
    });
    Ok(Box::new(waiting.abort_handle()))
}

/// Reports when a process has ended.
pub(super) fn wait_for_end(pid: u32, then: Then<()>) -> io::Result<Box<dyn CancellableWait>> {
    let ended = pidfd(pid)?.map(async_fd::watch).transpose()?;
    let waiting = tokio::spawn(async move {
        if let Some(ended) = ended {
            _ = ended.readable().await;
        }
        then(());
    });
    Ok(Box::new(waiting.abort_handle()))
}

/// Opens a pidfd; `None` if there is no such process any more.
fn pidfd(pid: u32) -> io::Result<Option<OwnedFd>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    match pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
        Some(Ok(pidfd)) => Ok(Some(pidfd)),
        None | Some(Err(Errno::SRCH)) => Ok(None),
        Some(Err(errno)) => Err(errno.into()),
    }
}

async fn gone(others: Others, outsider: Outsider, ended: AsyncFd<OwnedFd>) {
    let mut changed = file_watch::watch(&others.told_in(&outsider));
    // Checked with both watches set: what happens from now on wakes us, and the pid is that of the program we
    // mean.
    while is_there(&others, &outsider).await {
        tokio::select! {
            _ = ended.readable() => return,
            Some(()) = changed.recv() => {}
        }
    }
}

async fn is_there(others: &Others, outsider: &Outsider) -> bool {
    let (others, outsider) = (others.clone(), outsider.clone());
    // If no thread could be had, nothing is proved.
    tokio::task::spawn_blocking(move || others.has(&outsider)).await.unwrap_or(true)
}
