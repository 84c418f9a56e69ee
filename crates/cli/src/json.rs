//! The objects of the contract. What is absent is `null`, times are RFC 3339 in UTC.

use pinfold_daemon::objects;
use pinfold_lock::{HolderSeen, LockSeen, ProcessSeen};
use serde_json::{Value, json};

/// The lock object.
pub(crate) fn lock(lock: &LockSeen) -> Value {
    json!(objects::lock(lock))
}

/// The holder of a lock.
pub(crate) fn holder(holder: &HolderSeen) -> Value {
    json!(objects::holder(holder))
}

/// A process that was found.
pub(crate) fn process(process: &ProcessSeen) -> Value {
    json!(objects::process(process))
}
