//! Where an agent keeps its sessions.

use super::Preset;
use serde::{Deserialize, Serialize};

/// The folder in which an agent keeps its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorStore {
    /// The variable that names the folder.
    pub variable: String,
    /// The folder if that is not set, relative to the user's home.
    pub default: String,
    /// The folder below the one that the variable names, if the variable names a home.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub below: String,
    /// Other variables by which a user moves the sessions: a session keeps their values with its conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved_by: Vec<String>,
}

impl VendorStore {
    /// Returns the folder, given the environment's variables.
    #[must_use]
    pub fn folder<'v>(&self, variable: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = || Some(format!("{}/{}", set("HOME")?, self.default));
        let named = |folder: &str| match self.below.as_str() {
            "" => folder.to_owned(),
            below => format!("{folder}/{below}"),
        };
        set(&self.variable).map(named).or_else(home)
    }
}

impl Preset {
    /// Returns the pattern of a vendor session's file, below its store.
    #[must_use]
    pub fn transcript_of(&self, vendor_session: &str) -> Option<String> {
        // An id that is not a plain word could lead out of the store, or match another session's file.
        let pattern = self.transcript.as_ref().filter(|_| is_plain(vendor_session))?;
        // Some vendors have only the beginning of the id in the file's name.
        let begin = vendor_session.get(..8).unwrap_or(vendor_session);
        Some(pattern.replace("{vendor_session:8}", begin).replace("{vendor_session}", vendor_session))
    }

    /// Returns the file on which the writer of a vendor session holds a flock, below its store.
    #[must_use]
    pub fn writer_lock_of(&self, vendor_session: &str) -> Option<String> {
        let lock = self.writer_lock.as_ref().filter(|_| is_plain(vendor_session))?;
        Some(lock.replace("{vendor_session}", vendor_session))
    }

    /// Returns the session that the terminal program says it leaves, from its last line.
    #[must_use]
    pub fn left_in<'l>(&self, line: &'l str) -> Option<&'l str> {
        let (before, after) = self.last_line.as_deref()?.split_once("{vendor_session}")?;
        let (_, rest) = line.split_once(before)?;
        let word = rest.split_whitespace().next()?;
        word.strip_suffix(after).filter(|id| is_plain(id) && self.vendor_id.accepts(id))
    }

    /// Returns the session that a hook of the terminal program named last, from its spool: the run, a space,
    /// and JSON. What a hook of another run wrote does not count.
    #[must_use]
    pub fn left_in_spool(&self, run: &str, spool: &[u8]) -> Option<String> {
        let key = self.spool_key.as_deref()?;
        let told = spool.strip_prefix(run.as_bytes())?.strip_prefix(b" ")?;
        let told: serde_json::Value = serde_json::from_slice(told).ok()?;
        told.get(key)?.as_str().filter(|id| is_plain(id) && self.vendor_id.accepts(id)).map(str::to_owned)
    }

    /// Returns where the agent's processes say which session they are in, below its store: the folder, and
    /// the parts of the file name before and after the pid.
    #[must_use]
    pub fn id_files(&self) -> Option<(&str, &str, &str)> {
        let file = self.id_file.as_deref()?;
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let (before, after) = name.split_once("{pid}")?;
        Some((folder, before, after))
    }
}

/// Returns whether an id has only letters, digits, dashes and underscores.
pub(super) fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !id.is_empty() && id.len() <= 256 && id.bytes().all(plain)
}
