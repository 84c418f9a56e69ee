//! `locks`: lists the held locks. Needs no daemon.

use crate::doing::StandaloneVerb;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, Paper, TableCell, Worth, ago, plain, print, say, talk};
use clap::Args;
use pinfold_api::time;
use pinfold_api::word::HolderVerdict;
use pinfold_daemon::objects;
use pinfold_lock::{LockSeen, shorten};

/// Nothing to choose.
#[derive(Debug, Args)]
pub(crate) struct Locks {}

impl StandaloneVerb for Locks {
    fn act(&self, global: &Global) -> Result<(), Failure> {
        let mut locks = Vec::new();
        for folder in home::existing_folders(global)? {
            locks.extend(folder.locks().map_err(|errno| Failure::from_error(Kind::Failed, &errno))?);
        }
        if global.json {
            let objects: Vec<_> = locks.iter().map(objects::lock).collect();
            let text =
                serde_json::to_string(&objects).map_err(|error| Failure::from_error(Kind::Failed, &error))?;
            say(&text);
        } else if !locks.is_empty() {
            let rows: Vec<_> = locks.iter().map(row).collect();
            print(&Paper::stdout().fitted(HEADS, &rows));
        } else if !global.quiet {
            talk(&"no lock is held");
        }
        Ok(())
    }
}

const HEADS: [(&str, Worth); 7] = [
    ("RESOURCE", Worth::Needed(20)),
    ("SESSION", Worth::Wanted(3)),
    ("HOLDER", Worth::Needed(7)),
    ("FOR", Worth::Wanted(2)),
    ("FENCE", Worth::Extra),
    ("REASON", Worth::Extra),
    ("COMMAND", Worth::Sentence),
];

fn row(lock: &LockSeen) -> [TableCell<'static>; 7] {
    let pid = lock.holder.identity.map_or("-".to_owned(), |identity| identity.pid.to_string());
    let verdict = objects::holder(&lock.holder).verdict;
    let mut holder = if verdict == HolderVerdict::Alive { pid } else { format!("{pid} ({verdict})") };
    for other in &lock.others {
        holder = format!("{holder}, {}", other.pid);
    }
    let mut resource = lock.resource.clone();
    if lock.removed {
        resource.push_str(" (lock file removed)");
    }
    let cells = [
        resource,
        lock.session.clone().unwrap_or_else(|| "-".to_owned()),
        holder,
        lock.since_ms.and_then(|since| ago(&time::rfc3339(since))).unwrap_or_else(|| "-".to_owned()),
        lock.fence.map_or("-".to_owned(), |fence| fence.to_string()),
        shorten(lock.reason.as_deref().unwrap_or_default()),
        lock.holder.command.clone(),
    ];
    cells.map(plain)
}
