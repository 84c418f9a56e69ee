//! Where a daemon keeps its things. Every name is made from an id, never from what a user typed.

use pinfold_store::SessionId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders of one home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Database, logs and session locks.
    pub state: PathBuf,
    /// Sockets.
    pub runtime: PathBuf,
    /// The lock folder of the user.
    pub user_locks: PathBuf,
    /// The configuration; it need not exist.
    pub config: PathBuf,
    /// What every agent is told of where things live, as `NAME=value`.
    pub variables: Vec<OsString>,
    /// Why sockets are not where they would usually be.
    pub refused: Option<String>,
}

impl Home {
    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.state.join("pinfold.db")
    }

    /// How far the database was, as far as is known outside of it.
    #[must_use]
    pub fn witness(&self) -> PathBuf {
        self.state.join("witness")
    }

    /// The words of everything that can be found, made of the database and made anew from it where it is missing.
    #[must_use]
    pub fn search_index(&self) -> PathBuf {
        self.state.join("search.db")
    }

    /// What hashes in the names of accounts are keyed with.
    #[must_use]
    pub fn account_key(&self) -> PathBuf {
        self.state.join("account.key")
    }

    /// Room that is given back to a full disk.
    #[must_use]
    pub fn reserve(&self) -> PathBuf {
        self.state.join("reserve")
    }

    /// Stops that acted on a full disk.
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

    /// What was given to sessions with `--env`.
    #[must_use]
    pub fn values(&self) -> crate::define::values::Values {
        crate::define::values::Values::of(&self.state)
    }

    /// The output of a session's agents.
    #[must_use]
    pub fn log(&self, id: SessionId) -> PathBuf {
        self.session(id).join("output.log")
    }

    /// What an agent with a protocol printed, and what was said to it.
    #[must_use]
    pub fn tape(&self, id: SessionId) -> PathBuf {
        self.session(id).join("tape")
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

    /// Where a session's agent listens, if it serves several clients. The kernel takes no long path here, and an agent has no way around
    /// that: it is beside the shim's, where paths are short.
    #[must_use]
    pub fn agent_socket(&self, id: SessionId) -> PathBuf {
        self.runtime.join("agents").join(format!("{id}.sock"))
    }

    /// Where a session's shim may listen: one of an earlier daemon was told another folder, and one that cannot listen
    /// there does so beside its records.
    pub(crate) fn shim_sockets(&self, id: SessionId) -> [PathBuf; 3] {
        let own = self.shim_socket(id);
        let of_home = Home { runtime: self.state.clone(), ..self.clone() }.shim_socket(id);
        [own, of_home, self.records(id).with_file_name(pinfold_shim::BESIDE_RECORDS)]
    }

    /// Every folder that must be there before anything is started.
    pub(crate) fn folders(&self) -> [PathBuf; 5] {
        let below = |name| self.runtime.join(name);
        let sessions = self.state.join("sessions");
        [self.state.clone(), sessions, self.runtime.clone(), below("shims"), below("agents")]
    }
}

/// A path as text for people; what is not UTF-8 is replaced.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
