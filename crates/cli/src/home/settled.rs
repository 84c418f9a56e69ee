//! Prepares a home for use: makes it if it is missing, and closes it to others.

use super::trust::{self, HomeCandidate, Missing};
use super::{paths, user_locks};
use crate::global::Global;
use crate::output::{Failure, talk};
use pinfold_daemon::Home;
use std::path::{Path, PathBuf};

/// The paths of everything in a home.
pub(crate) fn home(global: &Global) -> Result<Home, Failure> {
    let state = folder(global)?;
    let (runtime, refused) = paths::runtime(global)?;
    Ok(Home {
        state,
        runtime,
        user_locks: user_locks::user_locks()?,
        config: paths::config(global)?,
        variables: paths::variables(global)?,
        refused,
    })
}

/// The home; made if missing, and closed if it is open to others.
pub(crate) fn folder(global: &Global) -> Result<PathBuf, Failure> {
    let path = paths::home_path(global)?;
    settle(&path, Missing::Make, global)?;
    Ok(path)
}

/// The home, if it exists.
pub(super) fn existing(global: &Global) -> Result<Option<PathBuf>, Failure> {
    let path = paths::home_path(global)?;
    Ok(settle(&path, Missing::Leave, global)?.then_some(path))
}

/// Whether the home exists; an error if it may not be used.
fn settle(path: &Path, missing: Missing, global: &Global) -> Result<bool, Failure> {
    let usual = paths::usual_home();
    let candidate = HomeCandidate {
        path,
        usual: usual.as_deref() == Some(path),
        list: usual.as_ref().map(|usual| usual.join(trust::LIST)),
    };
    let Some(settled) = trust::settle(&candidate, missing, global)? else { return Ok(false) };
    if let Some(from) = settled.tightened {
        say_tightened(path, from, global);
    }
    Ok(true)
}

pub(super) fn say_tightened(path: &Path, from: u32, global: &Global) {
    if !global.quiet {
        let path = path.display();
        talk(&format!("note: {path} was open to others (mode {from:04o}); it is 0700 now"));
    }
}
