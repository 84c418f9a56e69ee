//! What verbs and locks did that no session decided: appended to `audit.jsonl`, taken into the events by the
//! daemon.

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
use std::path::{Path, PathBuf};

/// Symbolic links are not followed.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;

/// Appends one record, durably: before what it reports is done.
///
/// # Errors
/// The file cannot be written.
pub fn append(path: &Path, record: &Value) -> io::Result<()> {
    let mut file =
        OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(NO_LINK).open(path)?;
    // The daemon takes the records under the same lock, so nothing can be written unnoticed.
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

/// The time, in the format of records.
#[must_use]
pub fn now() -> String {
    pinfold_api::time::rfc3339(u64::try_from(crate::clock::wall().0).unwrap_or(0))
}

/// The records of the file, and the file under its lock: nothing can be appended until they are stored.
pub(crate) struct AuditRecords {
    pub(crate) events: Vec<AuditRecord>,
    file: std::fs::File,
}

/// One record, with the name of the session that it is about.
pub(crate) struct AuditRecord {
    pub(crate) event: AuditEvent,
    pub(crate) session: Option<String>,
}

/// What there is to take.
pub(crate) enum AuditState {
    Nothing,
    Records(AuditRecords),
    /// Another process has the file's lock: its records so far can be known, and are taken when the file is
    /// free.
    Busy(Vec<AuditRecord>),
}

/// Reads the records, without waiting for a lock.
pub(crate) fn read(path: &Path) -> Result<AuditState, Errno> {
    let Some(mut file) = open(path)? else { return Ok(AuditState::Nothing) };
    let is_ours = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => true,
        Err(Errno::WOULDBLOCK) => false,
        Err(errno) => return Err(errno),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
    // Whatever another program has put there: the records beside it are taken, and so is it.
    let text = String::from_utf8_lossy(&bytes);
    let events: Vec<AuditRecord> = text.lines().filter(|line| !line.is_empty()).map(event).collect();
    Ok(match (is_ours, events.is_empty()) {
        (false, _) => AuditState::Busy(events),
        (true, true) => AuditState::Nothing,
        (true, false) => AuditState::Records(AuditRecords { events, file }),
    })
}

/// Waits on a thread of its own until the file is free, and reports it.
///
/// # Errors
/// No thread could be started.
pub(crate) fn when_free(path: PathBuf, then: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let wait = move || {
        let free = open(&path).and_then(|file| match file {
            Some(file) => rustix::fs::flock(&file, FlockOperation::LockExclusive),
            None => Ok(()),
        });
        match free {
            Ok(()) => then(),
            Err(errno) => tracing::warn!("the audit of verbs cannot be waited for: {errno}"),
        }
    };
    std::thread::Builder::new().name("audit".into()).stack_size(128 << 10).spawn(wait).map(drop)
}

fn open(path: &Path) -> Result<Option<std::fs::File>, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(None),
        file => Ok(Some(file?.into())),
    }
}

impl AuditRecords {
    /// The records are stored: empties the file.
    pub(crate) fn settle(&self) -> Result<(), Errno> {
        rustix::fs::ftruncate(&self.file, 0)
    }
}

/// A line that cannot be read is kept as it is: an audit forgets nothing.
fn event(line: &str) -> AuditRecord {
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
    AuditRecord { event: AuditEvent { at, session: None, run, kind, why, data }, session }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_once_and_what_cannot_be_read_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        assert!(matches!(read(&path), Ok(AuditState::Nothing)));
        let good = r#"{"kind":"unlocked","at":"2026-11-15T18:00:00Z","why":"asked","session":"api","run":null,"resource":"key:k"}"#;
        std::fs::write(&path, format!("{good}\n\nnonsense\n")).unwrap();
        let Ok(AuditState::Records(left)) = read(&path) else { panic!("nothing is there") };
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
        assert!(matches!(read(&path), Ok(AuditState::Nothing)));
    }
}
