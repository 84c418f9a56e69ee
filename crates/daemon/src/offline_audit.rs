//! What verbs and locks did that no session decided: appended to `audit.jsonl`, taken into the events by the daemon.

use crate::objects;
use pinfold_core::{EventKind, Wall};
use pinfold_lock::SurvivorsEnded;
use pinfold_store::AuditEvent;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Map, Value, json};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Nothing that a link leads to is written to.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;

/// Appends one record, durably: before what it tells of is done.
///
/// # Errors
/// The file cannot be written.
pub fn append(path: &Path, record: &Value) -> io::Result<()> {
    let mut file =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(NO_LINK).open(path)?;
    // The daemon takes the file in under the same lock, so nothing is written behind its back.
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    file.write_all(format!("{record}\n").as_bytes())?;
    file.sync_data()
}

/// The record of processes that a grant ends.
#[must_use]
pub fn ended_by_lock(ended: &SurvivorsEnded) -> Value {
    let own = std::process::id();
    json!({
        "at": now(),
        "kind": EventKind::EndedByLock,
        "session": ended.session,
        "run": ended.run,
        "why": "its shim was lost, and what it left behind is ended before the lock is granted",
        "resource": ended.resource,
        "fence": ended.fence,
        "ended": ended.processes.iter().map(objects::process).collect::<Vec<_>>(),
        "by": by(&pinfold_kernel::proc::command(own)),
    })
}

/// Who does it: this process.
#[must_use]
pub fn by(command: &str) -> Value {
    let user = rustix::process::getuid().as_raw();
    json!({ "pid": std::process::id(), "user": user, "command": command })
}

/// The time, as records have it.
#[must_use]
pub fn now() -> String {
    pinfold_api::time::rfc3339(u64::try_from(crate::clock::wall().0).unwrap_or(0))
}

/// The records of the file, and the file under its lock: nobody appends until they are stored.
pub(crate) struct Left {
    pub(crate) events: Vec<Told>,
    file: std::fs::File,
}

/// One record, with the name of the session that it is about.
pub(crate) struct Told {
    pub(crate) event: AuditEvent,
    pub(crate) session: Option<String>,
}

/// Reads what is there; nothing where there is no file, or nothing in it.
pub(crate) fn read(path: &Path) -> Result<Option<Left>, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    let mut file = std::fs::File::from(file);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
    // Whatever another program has put there: the records beside it are told, and it is too.
    let text = String::from_utf8_lossy(&bytes);
    let events: Vec<Told> = text.lines().filter(|line| !line.is_empty()).map(event).collect();
    Ok((!events.is_empty()).then_some(Left { events, file }))
}

impl Left {
    /// They are stored: the file is empty from now on.
    pub(crate) fn settle(&self) -> Result<(), Errno> {
        rustix::fs::ftruncate(&self.file, 0)
    }
}

/// A line that cannot be read is kept as it is: an audit forgets nothing.
fn event(line: &str) -> Told {
    let mut data: Map<String, Value> = match serde_json::from_str(line) {
        Ok(Value::Object(data)) => data,
        Ok(_) | Err(_) => Map::from_iter([("line".to_owned(), Value::from(line))]),
    };
    let mut text = |key: &str| data.remove(key).and_then(|value| value.as_str().map(str::to_owned));
    let at = text("at").and_then(|at| pinfold_api::time::moment(&at)).map_or_else(crate::clock::wall, Wall);
    let kind = text("kind").map_or(EventKind::Unlocked, |kind| kind.as_str().into());
    let why = text("why").unwrap_or_default();
    let session = text("session");
    let run = text("run").and_then(|run| run.parse().ok());
    for absent in ["session", "run", "seq"] {
        data.remove(absent);
    }
    Told { event: AuditEvent { at, session: None, run, kind, why, data }, session }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_once_and_what_cannot_be_read_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        assert!(read(&path).unwrap().is_none());
        let good = r#"{"kind":"unlocked","at":"2026-11-15T18:00:00Z","why":"asked","session":"api","run":null,"resource":"key:k"}"#;
        std::fs::write(&path, format!("{good}\n\nnonsense\n")).unwrap();
        let left = read(&path).unwrap().unwrap();
        assert_eq!(left.events.len(), 2);
        assert_eq!(left.events[0].session.as_deref(), Some("api"));
        let first = &left.events[0].event;
        assert_eq!(
            (first.kind.word(), first.why.as_str(), first.at),
            ("unlocked", "asked", Wall(1_794_765_600_000))
        );
        assert_eq!(first.data["resource"], "key:k");
        assert_eq!(left.events[1].event.data["line"], "nonsense");
        left.settle().unwrap();
        drop(left);
        assert!(read(&path).unwrap().is_none());
    }
}
