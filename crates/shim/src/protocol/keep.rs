//! What a new shim keeps; said once, with the descriptors of the locks.

use crate::protocol::frame::{FieldWriter, Fields, FrameError};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What a new shim keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The session's name, for people and as `PINFOLD_SESSION`.
    pub session: String,
    /// Where to listen for daemons; if that is impossible, the shim listens beside the records.
    pub listen: PathBuf,
    /// When to begin listening there.
    pub listens: Listens,
    /// The file of exit records.
    pub records: PathBuf,
    /// The log; older parts of it get `.1`, `.2` ... appended.
    pub log: PathBuf,
    /// The locks; the first is the session's own.
    pub locks: Vec<LentLock>,
    /// Whether its runs outlive the process that started it.
    pub tie: Tie,
    /// Where its agents' standard streams come from.
    pub streams: Streams,
    /// A folder to remove when the shim leaves after the process that started it.
    pub scratch: Option<PathBuf>,
    /// The folder of the tape; without it no run can have one.
    pub tape: Option<PathBuf>,
}

/// When a shim begins to listen for other processes than its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listens {
    /// From the start.
    #[default]
    AtOnce,
    /// When it has lost its daemon, or has a terminal that a client may want to see. Most shims never do, and
    /// a thousand sockets can take a seventh of a start.
    Late,
}

/// Where agents' standard streams come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streams {
    /// From the shim: input comes by command, output goes to the log.
    #[default]
    Kept,
    /// From the process that started the shim: the last three descriptors that came along.
    Given,
}

/// Whether runs outlive the process that started their shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tie {
    /// They do: daemons come and go.
    #[default]
    Free,
    /// They do not: when the first connection ends, the run is stopped and the shim leaves.
    ToParent,
}

/// One lock that is handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentLock {
    /// The lock's folder.
    pub folder: PathBuf,
    /// The description from [`pinfold_lock::Guard::lend`], as JSON.
    pub description: Vec<u8>,
    /// How many of the descriptors that came along belong to it.
    pub descriptors: usize,
}

impl Keep {
    pub(crate) fn write(&self, fields: &mut FieldWriter<'_>) {
        fields.bytes(1, self.session.as_bytes());
        fields.bytes(2, self.listen.as_os_str().as_bytes());
        fields.bytes(3, self.records.as_os_str().as_bytes());
        fields.bytes(4, self.log.as_os_str().as_bytes());
        LentLock::write_all(&self.locks, fields);
        fields.flag(6, self.tie == Tie::ToParent);
        if self.streams == Streams::Given {
            fields.flag(7, true);
        }
        if let Some(scratch) = &self.scratch {
            fields.bytes(8, scratch.as_os_str().as_bytes());
        }
        if self.listens == Listens::Late {
            fields.flag(9, true);
        }
        if let Some(tape) = &self.tape {
            fields.bytes(10, tape.as_os_str().as_bytes());
        }
    }

    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            session: fields.text(1)?,
            listen: path(fields.bytes(2)?),
            records: path(fields.bytes(3)?),
            log: path(fields.bytes(4)?),
            locks: LentLock::read_all(fields)?,
            tie: if fields.flag(6)? { Tie::ToParent } else { Tie::Free },
            streams: if fields.flag(7)? { Streams::Given } else { Streams::Kept },
            scratch: fields.find(8).map(path),
            listens: if fields.flag(9)? { Listens::Late } else { Listens::AtOnce },
            tape: fields.find(10).map(path),
        })
    }
}

impl LentLock {
    /// The tag of a lock, in every frame that hands locks over.
    const TAG: u8 = 5;

    pub(crate) fn write_all(locks: &[Self], fields: &mut FieldWriter<'_>) {
        for lock in locks {
            fields.group(Self::TAG, |f| {
                f.bytes(1, lock.folder.as_os_str().as_bytes()).bytes(2, &lock.description);
                f.number(3, lock.descriptors as u64);
            });
        }
    }

    pub(crate) fn read_all(fields: Fields<'_>) -> Result<Vec<Self>, FrameError> {
        let mut locks = Vec::new();
        for bytes in fields.all(Self::TAG) {
            let lock = fields.inside(bytes)?;
            locks.push(LentLock {
                folder: path(lock.bytes(1)?),
                description: lock.bytes(2)?.to_vec(),
                descriptors: lock.small(3)? as usize,
            });
        }
        Ok(locks)
    }
}

pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
