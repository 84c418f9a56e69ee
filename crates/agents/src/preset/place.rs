//! Where an agent keeps its sessions.

use super::Preset;
use serde::{Deserialize, Serialize};

/// Where an agent keeps its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The variable that names the folder.
    pub variable: String,
    /// The folder where that is not set, in the home of the user.
    pub default: String,
}

impl Store {
    /// The folder, for who has these variables.
    #[must_use]
    pub fn folder<'v>(&self, variable: impl Fn(&str) -> Option<&'v str>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = || Some(format!("{}/{}", set("HOME")?, self.default));
        set(&self.variable).map(str::to_owned).or_else(home)
    }
}

impl Preset {
    /// The pattern of the file of a vendor session, below its store.
    #[must_use]
    pub fn transcript_of(&self, vendor_session: &str) -> Option<String> {
        // What is not a plain word could lead out of the store, or match the file of another session.
        let pattern = self.transcript.as_ref().filter(|_| is_plain(vendor_session))?;
        // Some vendors have only the beginning of an id in the name.
        let begin = vendor_session.get(..8).unwrap_or(vendor_session);
        Some(pattern.replace("{vendor_session:8}", begin).replace("{vendor_session}", vendor_session))
    }

    /// The file that whoever writes a vendor session has a flock on, below its store.
    #[must_use]
    pub fn writer_lock_of(&self, vendor_session: &str) -> Option<String> {
        let lock = self.writer_lock.as_ref().filter(|_| is_plain(vendor_session))?;
        Some(lock.replace("{vendor_session}", vendor_session))
    }

    /// The session that its terminal program says it leaves, on its last line.
    #[must_use]
    pub fn left_in<'l>(&self, line: &'l str) -> Option<&'l str> {
        let (before, after) = self.last_line.as_deref()?.split_once("{vendor_session}")?;
        let (_, rest) = line.split_once(before)?;
        let word = rest.split_whitespace().next()?;
        word.strip_suffix(after).filter(|id| is_plain(id) && !id.starts_with('-'))
    }

    /// Where its processes say which session they are in, below its store: the folder, and what their files' names have
    /// before and after the pid.
    #[must_use]
    pub fn id_files(&self) -> Option<(&str, &str, &str)> {
        let file = self.id_file.as_deref()?;
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let (before, after) = name.split_once("{pid}")?;
        Some((folder, before, after))
    }
}

/// Whether an id is nothing but letters, digits, dashes and underscores.
pub(super) fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !id.is_empty() && id.len() <= 256 && id.bytes().all(plain)
}
