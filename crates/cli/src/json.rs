//! The objects of the contract. What is absent is `null`, times are RFC 3339 in UTC.

use pinfold_lock::{HolderSeen, LockSeen, ProcessSeen, time};
use serde_json::{Value, json};

/// The lock object.
pub(crate) fn lock(lock: &LockSeen) -> Value {
    json!({
        "resource": lock.resource,
        "kind": lock.kind,
        "fence": lock.fence,
        "since": lock.since_ms.map(time::rfc3339),
        "reason": lock.reason,
        "session": lock.session,
        "run": lock.run,
        "holder": holder(&lock.holder),
        "others": lock.others.iter().map(process).collect::<Vec<_>>(),
        "removed": lock.removed,
    })
}

/// The holder of a lock.
pub(crate) fn holder(holder: &HolderSeen) -> Value {
    let identity = holder.identity;
    json!({
        "pid": identity.map(|identity| identity.pid),
        "start_ticks": identity.map(|identity| identity.start_ticks),
        "boot_id": identity.map(|identity| identity.boot),
        "pid_ns": identity.map(|identity| identity.pid_namespace),
        "host": holder.host,
        "command": holder.command,
        "verdict": holder.verdict.word(),
    })
}

/// A process that was found.
pub(crate) fn process(process: &ProcessSeen) -> Value {
    json!({ "pid": process.pid, "command": process.command })
}
