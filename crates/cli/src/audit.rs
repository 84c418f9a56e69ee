//! Records what a verb did without the daemon in `audit.jsonl` in the home; the daemon imports it later.

use crate::global::Global;
use crate::output::{Failure, Kind, talk};
use crate::{daemon, home};
use pinfold_api::endpoint::TakeAudit;
use pinfold_daemon::offline_audit as audit;
use pinfold_lock::Folder;
use serde_json::Value;

/// Appends one record, durably.
pub(crate) fn append(record: &Value, global: &Global) -> Result<(), Failure> {
    let path = home::folder(global)?.join("audit.jsonl");
    audit::append(&path, record).map_err(|error| {
        Failure::new(Kind::Failed, format!("{} could not be written: {error}", path.display()))
    })
}

/// Asks a running daemon to turn the appended records into events now; without one, the next daemon does so
/// when it starts.
pub(crate) fn tell_daemon(global: &Global) {
    if let Ok(client) = daemon::running(global) {
        _ = client.ask(&TakeAudit::call());
    }
}

/// Records every process that a grant in this folder ends, before it is ended.
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
