//! What can be locked, how people write it, and which file represents it.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Something that at most one holder may use at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Resource {
    /// `key:ANY`: any name at all.
    Key(String),
    /// `session:NAME`: a session of one home; its lock lives in that home's folder.
    Session(SessionName),
    /// `vendor:AGENT:STORE:ID`: a conversation in an agent's own store.
    Vendor(String),
    /// A directory with everything below it.
    Directory(PathBuf),
}

/// The kinds of resources, as the lock object names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// Written `key:`.
    Key,
    /// Written `session:`.
    Session,
    /// Written `vendor:`.
    Vendor,
    /// Written as a path.
    Directory,
}

/// A session's name: 1 to 64 of `a-z A-Z 0-9 . _ -`, not starting with `.` or `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionName(String);

/// A text that does not name a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAResource {
    /// The text is empty, or ends after `key:`.
    #[error("`{text}` names nothing")]
    Empty {
        /// What was written.
        text: String,
    },
    /// A session name with other characters, or too long.
    #[error("`{name}` is not a session name")]
    BadSessionName {
        /// What was written.
        name: String,
    },
    /// `vendor:` without agent, store and id.
    #[error("`{text}` is not of the form vendor:AGENT:STORE:ID")]
    BadVendor {
        /// What was written.
        text: String,
    },
    /// A key or a path with a NUL byte, or a key that is not UTF-8.
    #[error("`{text}` has bytes that no name may have")]
    BadBytes {
        /// What was written, as far as it can be shown.
        text: String,
    },
}

impl SessionName {
    /// Checks a name and wraps it.
    pub fn new(name: &str) -> Result<Self, NotAResource> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let good =
            (1..=64).contains(&name.len()) && name.bytes().all(allowed) && !name.starts_with(['.', '-']);
        if good {
            Ok(Self(name.to_owned()))
        } else {
            Err(NotAResource::BadSessionName { name: name.to_owned() })
        }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Resource {
    /// Parses a resource as people write it: `key:ANY`, `session:NAME`, `vendor:AGENT:STORE:ID`, otherwise a path.
    ///
    /// ```
    /// use pinfold_lock::Resource;
    /// assert_eq!(Resource::parse("key:deploy".as_ref()), Ok(Resource::Key("deploy".into())));
    /// assert_eq!(Resource::parse("./key:odd".as_ref()), Ok(Resource::Directory("./key:odd".into())));
    /// assert!(Resource::parse("session:no spaces".as_ref()).is_err());
    /// ```
    pub fn parse(text: &OsStr) -> Result<Self, NotAResource> {
        let shown = || text.to_string_lossy().into_owned();
        if text.is_empty() {
            return Err(NotAResource::Empty { text: shown() });
        }
        if text.as_bytes().contains(&0) {
            return Err(NotAResource::BadBytes { text: shown() });
        }
        let Some((kind, name)) = split_kind(text) else { return Ok(Self::Directory(PathBuf::from(text))) };
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(NotAResource::BadBytes { text: shown() });
        };
        if name.is_empty() {
            return Err(NotAResource::Empty { text: shown() });
        }
        match kind {
            ResourceKind::Key => Ok(Self::Key(name.to_owned())),
            ResourceKind::Session => SessionName::new(name).map(Self::Session),
            ResourceKind::Vendor => vendor(name).ok_or_else(|| NotAResource::BadVendor { text: shown() }),
            ResourceKind::Directory => Ok(Self::Directory(PathBuf::from(text))),
        }
    }

    /// Returns it as people write it; the same as `to_string`, but cheaper.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Key(name) => ["key:", name].concat(),
            Self::Session(name) => ["session:", &name.0].concat(),
            Self::Vendor(name) => ["vendor:", name].concat(),
            Self::Directory(path) => path.display().to_string(),
        }
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        match self {
            Self::Key(_) => ResourceKind::Key,
            Self::Session(_) => ResourceKind::Session,
            Self::Vendor(_) => ResourceKind::Vendor,
            Self::Directory(_) => ResourceKind::Directory,
        }
    }
}

fn split_kind(text: &OsStr) -> Option<(ResourceKind, &[u8])> {
    let prefixes: [(&[u8], ResourceKind); 3] = [
        (b"key:", ResourceKind::Key),
        (b"session:", ResourceKind::Session),
        (b"vendor:", ResourceKind::Vendor),
    ];
    prefixes.into_iter().find_map(|(prefix, kind)| Some((kind, text.as_bytes().strip_prefix(prefix)?)))
}

fn vendor(name: &str) -> Option<Resource> {
    let (agent, rest) = name.split_once(':')?;
    // The store may be a path that contains colons; an id contains none.
    let (store, id) = rest.rsplit_once(':')?;
    let whole = !agent.is_empty() && !store.is_empty() && !id.is_empty();
    whole.then(|| Resource::Vendor(name.to_owned()))
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Identifies a file by device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The number of the device.
    pub device: u64,
    /// The number of the inode on it.
    pub inode: u64,
}

impl From<&rustix::fs::Stat> for FileId {
    fn from(stat: &rustix::fs::Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

impl From<&rustix::fs::Statx> for FileId {
    fn from(stat: &rustix::fs::Statx) -> Self {
        Self { device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor), inode: stat.stx_ino }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::name::FileName;
    use std::path::Path;

    #[test]
    fn the_rows_of_the_resource_syntax() {
        let rows = [
            ("key:a b/c:d", Some(ResourceKind::Key)),
            ("key:", None),
            ("session:api", Some(ResourceKind::Session)),
            ("session:.api", None),
            ("session:-api", None),
            ("session:", None),
            ("vendor:claude:/home/u/.claude:id", Some(ResourceKind::Vendor)),
            ("vendor:claude", None),
            ("vendor:a:b", None),
            ("/tmp", Some(ResourceKind::Directory)),
            (".", Some(ResourceKind::Directory)),
            ("keys", Some(ResourceKind::Directory)),
            ("", None),
        ];
        for (text, kind) in rows {
            let parsed = Resource::parse(OsStr::new(text));
            assert_eq!(parsed.as_ref().ok().map(Resource::kind), kind, "{text}: {parsed:?}");
            if let Ok(resource) = parsed {
                assert_eq!(resource.to_string(), text);
            }
        }
    }

    #[test]
    fn a_session_name_is_checked_at_the_door() {
        assert!(SessionName::new(&"x".repeat(64)).is_ok());
        for bad in ["", ".x", "-x", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(SessionName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_users_text_becomes_a_path() {
        for name in ["../../etc/passwd", "a/b", "."] {
            assert!(!FileName::of_key(name).as_str().contains(['/', '.']));
        }
        assert_eq!(FileName::read("../k-1"), None);
        assert_eq!(FileName::read("k-../x"), None);
    }

    #[test]
    fn kinds_never_share_a_file() {
        let session = SessionName::new("x").unwrap();
        let names = [
            FileName::of_key("x"),
            FileName::of_session(&session),
            FileName::of_vendor("x"),
            FileName::of_path(Path::new("x")),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
