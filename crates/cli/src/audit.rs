//! What a verb did without the daemon, appended to `audit.jsonl` in the home; the daemon takes it in later.

use crate::args::Global;
use crate::connect;
use crate::error::{Failure, Kind};
use crate::places;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// Appends one record, durably.
pub(crate) fn append(record: &Value, global: &Global) -> Result<(), Failure> {
    let path = places::home(global)?.join("audit.jsonl");
    let written =
        OpenOptions::new().append(true).create(true).mode(0o600).open(&path).and_then(|mut file| {
            // The daemon takes the file in under the same lock, so nothing is written behind its back.
            rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
            file.write_all(format!("{record}\n").as_bytes())?;
            file.sync_data()
        });
    written.map_err(|error| {
        Failure::new(Kind::Failed, format!("{} could not be written: {error}", path.display()))
    })?;
    tell_daemon(global);
    Ok(())
}

/// A daemon that runs makes an event of it now, another one at its start.
fn tell_daemon(global: &Global) {
    if let Ok(client) = connect::running(global) {
        _ = client.post::<Value>("/v1/daemon/audit", &Value::Null);
    }
}
