//! Locks as the objects of the API.

use pinfold_api::object::{Holder, Lock, Process};
use pinfold_api::time;
use pinfold_api::word::{HolderVerdict, LockKind};
use pinfold_lock::Identity;
use pinfold_lock::{LockHolder, LockRecord, LockSeen, ProcessSeen};

/// The lock object.
#[must_use]
pub fn lock(lock: &LockSeen) -> Lock {
    Lock {
        resource: lock.resource.clone(),
        kind: kind(lock.kind),
        fence: lock.fence.map(|fence| fence.0),
        since: lock.since_ms.map(time::rfc3339),
        reason: lock.reason.clone(),
        session: lock.session.clone(),
        run: lock.run.as_ref().map(ToString::to_string),
        holder: holder(&lock.holder),
        others: lock.others.iter().map(process).collect(),
        removed: lock.removed,
    }
}

/// The holder of a lock.
#[must_use]
pub fn holder(holder: &LockHolder) -> Holder {
    let verdict = HolderVerdict::from(holder.verdict.word());
    named(holder.identity, &holder.host, &holder.command, verdict)
}

/// A process that was found.
#[must_use]
pub fn process(process: &ProcessSeen) -> Process {
    Process { pid: process.pid, command: process.command.clone() }
}

/// A lock that was just granted; its holder is alive.
pub(crate) fn granted(record: &LockRecord, kind: pinfold_lock::ResourceKind) -> Lock {
    let identity = record.agent.unwrap_or(record.holder);
    Lock {
        resource: record.resource.clone(),
        kind: self::kind(kind),
        fence: Some(record.fence.0),
        since: Some(time::rfc3339(record.since_ms)),
        reason: record.reason.clone(),
        session: record.session.clone(),
        run: record.run.as_ref().map(ToString::to_string),
        holder: named(Some(identity), &record.host, &record.command, HolderVerdict::Alive),
        others: Vec::new(),
        removed: false,
    }
}

fn named(identity: Option<Identity>, host: &str, command: &str, verdict: HolderVerdict) -> Holder {
    Holder {
        pid: identity.map(|identity| identity.pid),
        start_ticks: identity.map(|identity| identity.start_ticks),
        boot_id: identity.map(|identity| identity.boot.to_string()),
        pid_ns: identity.map(|identity| identity.pid_namespace),
        host: host.to_owned(),
        command: command.to_owned(),
        verdict,
    }
}

fn kind(kind: pinfold_lock::ResourceKind) -> LockKind {
    match kind {
        pinfold_lock::ResourceKind::Key => LockKind::Key,
        pinfold_lock::ResourceKind::Session => LockKind::Session,
        pinfold_lock::ResourceKind::Vendor => LockKind::Vendor,
        pinfold_lock::ResourceKind::Directory => LockKind::Directory,
    }
}
