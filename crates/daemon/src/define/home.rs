//! The paths of a home. Every name is made from an id, never from what a user typed.

use pinfold_store::SessionId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders of one home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Database, logs and session locks.
    pub state: PathBuf,
    /// The folder for sockets.
    pub runtime: PathBuf,
    /// The user's lock folder.
    pub user_locks: PathBuf,
    /// The configuration file; it need not exist.
    pub config: PathBuf,
    /// The variables that tell every agent where things are, as `NAME=value`.
    pub variables: Vec<OsString>,
    /// Why sockets are not in their usual folder.
    pub refused: Option<String>,
}

impl Home {
    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.state.join("pinfold.db")
    }

    /// The file that records how far the database was, outside of it.
    #[must_use]
    pub fn witness(&self) -> PathBuf {
        self.state.join("witness")
    }

    /// The search index, made from the database and made again if it is missing.
    #[must_use]
    pub fn search_index(&self) -> PathBuf {
        self.state.join("search.db")
    }

    /// The key of the hashes in account names.
    #[must_use]
    pub fn account_key(&self) -> PathBuf {
        self.state.join("account.key")
    }

    /// A file whose space is given back when the disk is full.
    #[must_use]
    pub fn reserve(&self) -> PathBuf {
        self.state.join("reserve")
    }

    /// Stops that were carried out on a full disk and not recorded.
    #[must_use]
    pub fn stops(&self) -> PathBuf {
        self.state.join("stops")
    }

    /// The API socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.runtime.join("pinfold.sock")
    }

    /// The file whose flock makes the daemon the only one of its home.
    #[must_use]
    pub fn daemon_lock(&self) -> PathBuf {
        self.state.join(pinfold_shim::DAEMON_LOCK)
    }

    /// The daemon's own log.
    #[must_use]
    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    /// Events that were written while no daemon ran.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit.jsonl")
    }

    /// The locks of sessions.
    #[must_use]
    pub fn session_locks(&self) -> PathBuf {
        self.state.join("locks")
    }

    /// The folders of all sessions.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// The folder of one session.
    #[must_use]
    pub fn session(&self, id: SessionId) -> PathBuf {
        self.sessions().join(id.to_string())
    }

    /// The values given to sessions with `--env`.
    #[must_use]
    pub fn values(&self) -> crate::define::values::Values {
        crate::define::values::Values::of(&self.state)
    }

    /// The output of a session's agents.
    #[must_use]
    pub fn log(&self, id: SessionId) -> PathBuf {
        self.session(id).join("output.log")
    }

    /// What an agent with a protocol printed, and what it was told.
    #[must_use]
    pub fn tape(&self, id: SessionId) -> PathBuf {
        self.session(id).join("tape")
    }

    /// Which vendor session the terminal program of a session is in, as its hooks tell.
    #[must_use]
    pub fn spool(&self, id: SessionId) -> PathBuf {
        self.session(id).join("spool")
    }

    /// The copy of the vendor's transcript of a session.
    #[must_use]
    pub fn kept(&self, id: SessionId) -> PathBuf {
        self.session(id).join("kept")
    }

    /// The exit records of a session.
    #[must_use]
    pub fn records(&self, id: SessionId) -> PathBuf {
        self.session(id).join("exits")
    }

    /// Where a session's shim is told to listen.
    #[must_use]
    pub fn shim_socket(&self, id: SessionId) -> PathBuf {
        self.runtime.join("shims").join(format!("{id}.sock"))
    }

    /// Where a session's agent listens, if it serves several clients. The kernel limits the length of the
    /// path, and an agent cannot work around that: it is beside the shim's, where paths are short.
    #[must_use]
    pub fn agent_socket(&self, id: SessionId) -> PathBuf {
        self.runtime.join("agents").join(format!("{id}.sock"))
    }

    /// Where a session's shim may listen: an earlier daemon may have told it another folder, and a shim that
    /// cannot listen there listens beside its records.
    pub(crate) fn shim_sockets(&self, id: SessionId) -> [PathBuf; 3] {
        let own = self.shim_socket(id);
        let of_home = Home { runtime: self.state.clone(), ..self.clone() }.shim_socket(id);
        [own, of_home, self.records(id).with_file_name(pinfold_shim::BESIDE_RECORDS)]
    }

    /// Every folder that must exist before anything is started.
    pub(crate) fn folders(&self) -> [PathBuf; 5] {
        let below = |name| self.runtime.join(name);
        let sessions = self.state.join("sessions");
        [self.state.clone(), sessions, self.runtime.clone(), below("shims"), below("agents")]
    }
}

/// A path as text for people; bytes that are not UTF-8 are replaced.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
