//! What a verb did without the daemon, appended to `audit.jsonl` in the home; the daemon takes it in later.

use crate::args::Global;
use crate::connect;
use crate::edge::talk;
use crate::error::{Failure, Kind};
use crate::places;
use pinfold_daemon::offline_audit as audit;
use pinfold_lock::Folder;
use serde_json::Value;

/// Appends one record, durably.
pub(crate) fn append(record: &Value, global: &Global) -> Result<(), Failure> {
    let path = places::home(global)?.join("audit.jsonl");
    audit::append(&path, record).map_err(|error| {
        Failure::new(Kind::Failed, format!("{} could not be written: {error}", path.display()))
    })
}

/// A daemon that runs makes events of what was appended now, another one at its start.
pub(crate) fn tell_daemon(global: &Global) {
    if let Ok(client) = connect::running(global) {
        _ = client.post::<Value>("/v1/daemon/audit", &Value::Null);
    }
}

/// Has every process that a grant of this folder ends written down first.
pub(crate) fn of_grants(folder: &Folder, global: &Global) {
    let global = global.clone();
    folder.tell_of_ended(move |ended| {
        let written = append(&audit::ended_by_lock(ended), &global);
        let pids: Vec<String> = ended.processes.iter().map(|process| process.pid.to_string()).collect();
        if !global.quiet {
            let holder = ended.session.as_ref().map(|session| format!(" session `{session}`,"));
            talk(&format!(
                "note: ends {}, left by the last holder of `{}`,{} whose shim was lost",
                pids.join(", "),
                ended.resource,
                holder.unwrap_or_default()
            ));
        }
        match written {
            Ok(()) => tell_daemon(&global),
            Err(failure) => talk(&format!("warning: {}", failure.message())),
        }
    });
}
