//! Locks that a shim takes during a run and keeps until its end: those of vendor sessions that became known
//! in it.

use super::opening::ShimOpenError;
use super::shim::{Phase, Shim};
use crate::crash;
use crate::protocol::keep::LentLock;
use crate::protocol::report::Report;
use pinfold_core::ids::RunNumber;
use pinfold_lock::{Folder, Guard, LockRecord, Request};
use std::os::fd::OwnedFd;

impl Shim {
    /// Takes locks whose descriptors came along, and reports which of them are held now.
    pub(super) fn hold(&mut self, run: RunNumber, locks: &[LentLock]) {
        let came: Vec<_> = locks.iter().map(|lock| (lock, self.descriptors_of(lock))).collect();
        if !self.is_present(run) {
            // Their descriptors are closed; the sender still has its own.
            return self.tell_of(run);
        }
        let Some(request) = self.guards.first().map(|guard| request(guard.record())) else { return };
        let taken = came.into_iter().filter_map(|(lock, own)| take(lock, own, &request).ok());
        let taken: Vec<Guard> = taken.collect();
        let resources = taken.iter().map(|guard| guard.resource().to_owned()).collect();
        if let Phase::Running(run) = &mut self.phase {
            run.held.extend(taken);
        }
        self.links.report(&Report::Held { run, resources });
        if let Some(daemon) = &mut self.links.daemon {
            daemon.flush(self.log.end());
        }
        crash::point("hold.acked");
    }

    fn descriptors_of(&mut self, lock: &LentLock) -> Vec<OwnedFd> {
        let daemon = self.links.daemon.as_mut();
        daemon.map_or_else(Vec::new, |daemon| daemon.take_descriptors(lock.descriptors))
    }

    /// The run has ended and is recorded: its locks are freed before the end is reported.
    pub(super) fn let_go(&mut self, held: Vec<Guard>) {
        if held.is_empty() {
            return;
        }
        self.store_end();
        for mut guard in held {
            // Without the mark the next holder looks for survivors, and finds none.
            let _ = guard.mark_released();
        }
    }
}

/// Returns what the session's own lock says of the run.
fn request(record: &LockRecord) -> Request {
    Request {
        reason: record.reason.clone(),
        session: record.session.clone(),
        command: record.command.to_string(),
        run: record.run.clone(),
        agent: record.agent,
        cgroup: record.cgroup.clone(),
        survivors: record.survivors,
        ..Request::default()
    }
}

fn take(lock: &LentLock, own: Vec<OwnedFd>, request: &Request) -> Result<Guard, ShimOpenError> {
    let folder = Folder::open(&lock.folder)?;
    let mut guard = Guard::adopt(&folder, serde_json::from_slice(&lock.description)?, own)?;
    guard.new_fence(request).map_err(|trouble| trouble.source)?;
    Ok(guard)
}
