//! What a new shim keeps: said once, with the descriptors of the locks.

use crate::protocol::frame::{Fields, FrameError, Writer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What a new shim keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The session's name, for people and as `PINFOLD_SESSION`.
    pub session: String,
    /// Where to listen for daemons; where that cannot be, beside the records.
    pub listen: PathBuf,
    /// From when on to listen there.
    pub listens: Listens,
    /// The file of exit records.
    pub records: PathBuf,
    /// The log; older parts of it get `.1`, `.2` ... appended.
    pub log: PathBuf,
    /// The locks; the first is the session's own.
    pub locks: Vec<Lock>,
    /// Whether its runs outlive whoever started it.
    pub tie: Tie,
    /// Whose are the standard streams of its agents.
    pub streams: Streams,
    /// A folder that goes when the shim leaves and whoever started it is gone.
    pub scratch: Option<PathBuf>,
    /// The folder of the tape; without it no run can have one.
    pub tape: Option<PathBuf>,
}

/// From when on a shim listens for others than the one who started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listens {
    /// From its beginning.
    #[default]
    AtOnce,
    /// When it has lost its daemon, or has a terminal that somebody may want to see. Most shims never do, and a
    /// thousand sockets can be a seventh of a start.
    Late,
}

/// Whose are the standard streams of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streams {
    /// The shim's: input comes by command, output goes to the log.
    #[default]
    Kept,
    /// Those of whoever started the shim: the last three descriptors that came along.
    Given,
}

/// Whether runs outlive whoever started their shim.
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
pub struct Lock {
    /// Its folder.
    pub folder: PathBuf,
    /// What [`pinfold_lock::Guard::lend`] describes, as JSON.
    pub description: Vec<u8>,
    /// How many of the descriptors that came along belong to it.
    pub descriptors: usize,
}

impl Keep {
    pub(crate) fn write(&self, fields: &mut Writer<'_>) {
        fields.bytes(1, self.session.as_bytes());
        fields.bytes(2, self.listen.as_os_str().as_bytes());
        fields.bytes(3, self.records.as_os_str().as_bytes());
        fields.bytes(4, self.log.as_os_str().as_bytes());
        Lock::write_all(&self.locks, fields);
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
            locks: Lock::read_all(fields)?,
            tie: if fields.flag(6)? { Tie::ToParent } else { Tie::Free },
            streams: if fields.flag(7)? { Streams::Given } else { Streams::Kept },
            scratch: fields.find(8).map(path),
            listens: if fields.flag(9)? { Listens::Late } else { Listens::AtOnce },
            tape: fields.find(10).map(path),
        })
    }
}

impl Lock {
    /// The tag of a lock, in every frame that hands some over.
    const TAG: u8 = 5;

    pub(crate) fn write_all(locks: &[Self], fields: &mut Writer<'_>) {
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
            locks.push(Lock {
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
