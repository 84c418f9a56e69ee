//! How a store is opened, and why it may be refused.

use crate::cause::Cause;
use crate::position::StorePosition;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How a store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// How long to wait for another process that writes.
    pub busy_timeout: Duration,
    /// The file that notes how far the store is.
    pub witness: Option<PathBuf>,
    /// The file that reserves space for a full disk.
    pub reserve: Option<PathBuf>,
    /// What happens to a batch that cannot be written for now.
    pub when_held_up: HeldUp,
    /// The folder that has a folder for each session, for answers too long for a row; without it they stay in their rows.
    pub sessions: Option<PathBuf>,
    /// Called at each step of storing such an answer.
    pub steps: Steps,
}

/// A function called at named steps, so that a test can end the process there.
#[derive(Clone, Copy)]
pub struct Steps(pub fn(&'static str));

impl Steps {
    pub(crate) fn pass(self, step: &'static str) {
        (self.0)(step);
    }
}

impl Default for Steps {
    fn default() -> Steps {
        Steps(|_| ())
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps")
    }
}

/// The function makes no difference to a store.
impl PartialEq for Steps {
    fn eq(&self, _: &Steps) -> bool {
        true
    }
}

impl Eq for Steps {}

/// What happens to a batch while another process writes, the disk is full, or the file has lost its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldUp {
    /// It fails.
    Fail,
    /// It waits, and so do those after it; [`Store::on_trouble`](crate::Store::on_trouble) says what for.
    Wait,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        // Nothing else should write at all: a process that does so for 5 s deserves a report.
        let busy_timeout = Duration::from_secs(5);
        StoreOptions {
            busy_timeout,
            witness: None,
            reserve: None,
            when_held_up: HeldUp::Fail,
            sessions: None,
            steps: Steps::default(),
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no store yet; only readers mind.
    #[error("there is no store at `{path}`")]
    Missing {
        /// The path of the store.
        path: PathBuf,
    },
    /// It is not what we left; nothing in it was changed.
    #[error("`{path}` is damaged: {problem}")]
    Damaged {
        /// The file that is affected.
        path: PathBuf,
        /// What is wrong with it.
        problem: Damage,
    },
    /// A later version of pinfold wrote it; nothing in it was changed.
    #[error(
        "`{path}` has schema version {found}{}, this program knows versions up to {known}",
        program.as_ref().map(|program| format!(" of pinfold {program}")).unwrap_or_default()
    )]
    TooNew {
        /// The file that is affected.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
        /// The version of the program that wrote it, if it says so.
        program: Option<String>,
    },
    /// The system refused.
    #[error("`{path}` cannot be opened")]
    Io {
        /// The file that is affected.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The back-end cannot use it, for a reason outside of the file.
    #[error("`{path}` cannot be used")]
    Unusable {
        /// The file that is affected.
        path: PathBuf,
        /// The back-end's error.
        #[source]
        source: Cause,
    },
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// Its log exists, but the file itself is missing or empty.
    #[error("it is missing or empty, but its log is there")]
    LogOnly,
    /// It ends in the middle of a page.
    #[error("it ends in the middle of a page, after {bytes} bytes")]
    Truncated {
        /// Its length.
        bytes: u64,
    },
    /// It is another program's database.
    #[error("it is another program's database")]
    NotOurs,
    /// Its tables are not those that were created.
    #[error("the description of its tables is damaged")]
    Tables,
    /// It is missing, but its witness exists.
    #[error("it is missing, and event {} was in it", .0.seq)]
    Missing(StorePosition),
    /// It lacks something that was in it.
    #[error("it ends with event {}, and event {} was in it{}", found.seq, noted.seq, of_generation(found, noted))]
    Behind {
        /// How far it is.
        found: StorePosition,
        /// How far it was.
        noted: StorePosition,
    },
    /// It is a healthy store, but not the one that was here.
    #[error("it is not the database that was here: event {} is another one", .0.seq)]
    Another(StorePosition),
    /// Neither half of the witness can be read.
    #[error("the note of how far it was cannot be read: `{0}` is damaged")]
    Witness(PathBuf),
    /// The back-end cannot read it.
    #[error("it cannot be read: {0}")]
    Unreadable(Cause),
    /// The back-end can read it and finds faults.
    #[error("{}", .0.join("; "))]
    Faults(Vec<String>),
}

/// Returns what tells two stores apart that end with the same event.
fn of_generation(found: &StorePosition, noted: &StorePosition) -> String {
    match (found.seq == noted.seq, found.generation < noted.generation) {
        (false, _) => String::new(),
        (true, true) => format!(" of daemon {}, not {}", noted.generation, found.generation),
        (true, false) => format!(", and {} changes more", noted.steps.saturating_sub(found.steps)),
    }
}

/// What was done to a store when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opened {
    /// It did not exist before.
    pub created: bool,
    /// Other users could have read it; now they cannot.
    pub tightened: bool,
    /// It existed before, but its witness did not.
    pub witnessed: bool,
}
