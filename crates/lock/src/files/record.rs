//! What a holder writes into its lock file: for people, and for the next acquirer if it dies.

use crate::files::fence::Fence;
use crate::files::name::FileName;
use crate::judge::identity::Identity;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// The environment variable by which the processes of a session's run are recognised.
pub const RUN_VARIABLE: &str = "PINFOLD_RUN";
/// The environment variable that lists, separated by `:`, the runs of the locks a command was started under.
pub const LOCK_RUNS_VARIABLE: &str = "PINFOLD_LOCK_RUNS";

/// The name of one run: everything that was started under one grant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunName(String);

/// A text that cannot name a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run is named by 1 to 64 letters, digits, `-` or `_`")]
pub struct NotARun;

impl RunName {
    /// Accepts a name that is safe in an environment variable and in a list.
    pub fn new(name: impl Into<String>) -> Result<Self, NotARun> {
        let name = name.into();
        let fits = (1..=64).contains(&name.len());
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if fits && plain { Ok(Self(name)) } else { Err(NotARun) }
    }

    /// Creates a name that no other run of this machine has, from the process, its start and a counter.
    #[must_use]
    pub fn fresh(own: &Identity) -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let boot = own.boot.0 as u64;
        let start = own.pidfs.unwrap_or(own.start_ticks);
        Self(format!("{boot:x}-{:x}-{:x}-{start:x}-{count:x}", own.pid_namespace, own.pid))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the next acquirer does about processes of this run that outlived its flock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Survivors {
    /// Nothing: the lock covers the holder's own work, so the flock alone decides.
    #[default]
    Ignore,
    /// It waits for them, and reports busy while they live.
    Wait,
    /// It ends them, and reports busy while that fails.
    End,
}

impl Survivors {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What is written about a holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    /// The fence of this grant.
    pub fence: Fence,
    /// The resource as people write it.
    pub resource: String,
    /// When it was granted, in milliseconds since 1970.
    pub since_ms: u64,
    /// The process that holds it.
    pub holder: Identity,
    /// The machine's name.
    #[serde(default)]
    pub host: Cow<'static, str>,
    /// The command that runs under it.
    #[serde(default)]
    pub command: Cow<'static, str>,
    /// What it is held for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session it is held for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The run it is held for; the run's processes carry its name in their environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunName>,
    /// The first process of the run, if it is not the holder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Identity>,
    /// The control group that contains only the run's processes, if its name shows that this holder made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<PathBuf>,
    /// What to do about processes that outlive the flock.
    #[serde(default, skip_serializing_if = "Survivors::is_default")]
    pub survivors: Survivors,
    /// For a directory, the names of its ancestors' lock files, root to leaf.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// Whether `above` lists only the first ancestors, because the directory lies too deep for all to fit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub above_cut: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Where the directory of a grant lies relative to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// It lies below the other.
    Certainly,
    /// It lies below or beside the other: it is too deep for all its ancestors to be recorded.
    Perhaps,
    /// It lies elsewhere.
    No,
}

/// The longest text of a user that is stored in full: a record has only one page.
const TEXT_MAX: usize = 256;
/// Room for a record of the usual length, so that writing it does not reallocate.
const USUAL: usize = 1000;

impl LockRecord {
    /// Returns the bytes to store. What does not fit is cut, the least needed first.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.text();
        if bytes.len() <= crate::files::layout::RECORD_MAX {
            return bytes;
        }
        let mut small = self.clone();
        cut(small.command.to_mut(), TEXT_MAX);
        small.reason.iter_mut().for_each(|text| cut(text, TEXT_MAX));
        let bytes = small.text();
        if bytes.len() <= crate::files::layout::RECORD_MAX {
            return bytes;
        }
        cut(&mut small.resource, TEXT_MAX);
        let bytes = small.text();
        if bytes.len() <= crate::files::layout::RECORD_MAX {
            return bytes;
        }
        (small.above, small.above_cut) = (Vec::new(), true);
        small.text()
    }

    /// Whether the directory of this grant lies below the one whose file is `name` and whose own ancestors
    /// have the files `above`.
    pub(crate) fn is_below(&self, name: &FileName, above: &[FileName]) -> Below {
        if self.above.iter().any(|one| one == name.as_str()) {
            return Below::Certainly;
        }
        // Every directory but the root has one above it. Records of the previous version could not say that
        // the list was cut.
        let directory = self.resource.starts_with('/') && self.resource != "/";
        let cut = self.above_cut || directory && self.above.is_empty();
        let shares_the_way = || self.above.iter().all(|one| above.iter().any(|file| file.as_str() == one));
        if cut && shares_the_way() { Below::Perhaps } else { Below::No }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(USUAL);
        // A struct of strings and numbers cannot fail to serialise.
        let _ = serde_json::to_writer(&mut text, self);
        text
    }

    /// Whether nothing of the grant outlives its flock: the next acquirer has nothing to search for, and its
    /// end needs no mark. A named run may be asked about, so a grant with one is not lone.
    pub(crate) fn is_lone(&self) -> bool {
        self.survivors == Survivors::Ignore && self.run.is_none()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

/// Returns the machine's name.
pub(crate) fn host() -> &'static str {
    static HOST: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    HOST.get_or_init(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::identity::BootId;

    fn record() -> LockRecord {
        LockRecord {
            fence: Fence(7),
            resource: "key:k".into(),
            since_ms: 1,
            holder: Identity { boot: BootId(1), pid_namespace: 2, pid: 3, start_ticks: 4, pidfs: None },
            host: "h".into(),
            command: "make".into(),
            reason: Some("why".into()),
            session: None,
            run: RunName::new("r-1").ok(),
            agent: None,
            cgroup: None,
            survivors: Survivors::End,
            above: Vec::new(),
            above_cut: false,
        }
    }

    #[test]
    fn a_directory_whose_ancestors_did_not_fit_may_lie_below_whatever_has_all_that_did() {
        let file = |inode| FileName::of_inode(crate::resource::FileId { device: 1, inode });
        let names = |inodes: &[u64]| inodes.iter().map(|inode| file(*inode).as_str().to_owned()).collect();
        let whole = LockRecord { resource: "/a/b".into(), above: names(&[1, 2, 3]), ..record() };
        let deep = LockRecord { above_cut: true, ..whole.clone() };
        let old = LockRecord { above: Vec::new(), ..whole.clone() };
        let rows = [
            (&whole, 2, vec![1], Below::Certainly),
            (&whole, 9, vec![1, 2, 3], Below::No),
            (&deep, 2, vec![1], Below::Certainly),
            (&deep, 9, vec![1, 2, 3], Below::Perhaps),
            (&deep, 9, vec![1, 2, 8], Below::No),
            (&deep, 9, vec![1], Below::No),
            (&old, 9, vec![1], Below::Perhaps),
        ];
        for (record, inode, above, expected) in rows {
            let above: Vec<FileName> = above.into_iter().map(file).collect();
            assert_eq!(record.is_below(&file(inode), &above), expected, "{record:?} {inode} {above:?}");
        }
        for other in ["key:k", "session:s", "/"] {
            let other = LockRecord { resource: other.into(), ..record() };
            assert_eq!(other.is_below(&file(1), &[]), Below::No, "{other:?}");
        }
    }

    #[test]
    fn a_record_reads_back_what_was_written() {
        assert_eq!(LockRecord::from_bytes(&record().to_bytes()), Some(record()));
    }

    #[test]
    fn a_record_always_fits_its_page_and_keeps_who_holds_it() {
        let long = "ä\u{1}".repeat(5000);
        let huge = LockRecord {
            command: long.clone().into(),
            reason: Some(long.clone()),
            resource: long,
            above: vec!["i-1-2".into(); 1000],
            ..record()
        };
        let bytes = huge.to_bytes();
        assert!(bytes.len() <= crate::files::layout::RECORD_MAX);
        let back = LockRecord::from_bytes(&bytes).unwrap();
        assert_eq!((back.holder, back.run), (record().holder, record().run));
    }

    #[test]
    fn a_run_is_a_plain_word() {
        for bad in ["", "a b", "a:b", "a=b", "a\n", &"x".repeat(65)] {
            assert_eq!(RunName::new(bad), Err(NotARun), "{bad:?}");
        }
        let own = record().holder;
        assert_ne!(RunName::fresh(&own), RunName::fresh(&own));
        assert!(RunName::new(RunName::fresh(&own).as_str()).is_ok());
    }
}
