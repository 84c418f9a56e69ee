//! `pinfold unlock`: ends the holder of a lock.

use crate::args::Global;
use crate::audit;
use crate::error::{Failure, Kind};
use crate::json;
use crate::places;
use pinfold_lock::{Ended, LockSeen, ProcessSeen, Resource, time};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn run(resource: &OsStr, kill: bool, global: &Global) -> Result<(), Failure> {
    let resource = Resource::parse(resource)?;
    if !kill {
        return Err(Failure::new(Kind::Usage, "a lock is freed only by ending its holder")
            .hint(format!("`pinfold unlock {resource} --kill` does that; `pinfold locks` shows who it is")));
    }
    let folder = places::folder_for(&resource, global)?;
    match folder.end_holder(&resource)? {
        Ended::NobodyHeld => {
            tell(
                global,
                &format!("nobody holds `{resource}`"),
                &json!({ "resource": resource.to_string(), "ended": [] }),
            );
            Ok(())
        }
        Ended::Free { lock, processes } => {
            let record = record(&lock, &processes, "pinfold unlock --kill ended the holder");
            // The holder is gone, whatever becomes of the note: a full disk does not make that a failure.
            if let Err(failure) = audit::append(&record, global) {
                eprintln!("note: {failure}; what was ended is not in the events");
            }
            let pids: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
            tell(global, &format!("`{}` is free; ended {}", lock.resource, pids.join(", ")), &record);
            Ok(())
        }
        Ended::StillHeld { lock, processes } => {
            audit::append(
                &record(&lock, &processes, "pinfold unlock --kill could not end the holder"),
                global,
            )?;
            let message = format!("`{}` is still held by {}", lock.resource, lock.holder_text());
            Err(Failure::new(Kind::Failed, message)
                .hint("it may be in uninterruptible sleep, or another user's"))
        }
    }
}

fn record(lock: &LockSeen, processes: &[ProcessSeen], why: &str) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "at": time::rfc3339(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
        "kind": "unlocked",
        "session": lock.session,
        "run": lock.run,
        "why": why,
        "resource": lock.resource,
        "fence": lock.fence,
        "holder": json::holder(&lock.holder),
        "ended": processes.iter().map(json::process).collect::<Vec<_>>(),
        "by": { "pid": std::process::id(), "user": rustix::process::getuid().as_raw() },
    })
}

fn tell(global: &Global, text: &str, value: &Value) {
    if global.json {
        super::say(value);
    } else if !global.quiet {
        super::say(&text);
    }
}
