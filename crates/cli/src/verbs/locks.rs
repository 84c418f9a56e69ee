//! `pinfold locks`: every lock that is held now.

use crate::args::Global;
use crate::error::{Failure, Kind};
use crate::places;
use pinfold_daemon::objects;
use pinfold_lock::{LockSeen, shorten, time};

pub(crate) fn run(global: &Global) -> Result<(), Failure> {
    let mut locks = Vec::new();
    for folder in places::existing_folders(global)? {
        locks.extend(folder.locks().map_err(|errno| Failure::from_error(Kind::Failed, &errno))?);
    }
    if global.json {
        let objects: Vec<_> = locks.iter().map(objects::lock).collect();
        let text =
            serde_json::to_string(&objects).map_err(|error| Failure::from_error(Kind::Failed, &error))?;
        super::say(&text);
    } else {
        let rows: Vec<Vec<String>> = locks.iter().map(row).collect();
        super::print_table(&["RESOURCE", "FENCE", "SINCE", "HOLDER", "COMMAND", "REASON"], &rows);
    }
    Ok(())
}

fn row(lock: &LockSeen) -> Vec<String> {
    let pid = lock.holder.identity.map_or("-".to_owned(), |identity| identity.pid.to_string());
    let verdict = lock.holder.verdict.word();
    let mut holder = if verdict == "alive" { pid } else { format!("{pid} ({verdict})") };
    for other in &lock.others {
        holder = format!("{holder}, {}", other.pid);
    }
    let mut resource = lock.resource.clone();
    if lock.removed {
        resource.push_str(" (lock file removed)");
    }
    vec![
        resource,
        lock.fence.map_or("-".to_owned(), |fence| fence.to_string()),
        lock.since_ms.map_or("-".to_owned(), |since| time::rfc3339(since)[..19].replace('T', " ")),
        holder,
        shorten(&lock.holder.command),
        shorten(lock.reason.as_deref().unwrap_or_default()),
    ]
}
