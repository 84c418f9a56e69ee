//! The control groups of runs: their names, and whether one could be made.

pub(crate) mod group;

use crate::protocol::start::Contain;
use group::Group;
use std::path::{Path, PathBuf};

/// How the names of runs' groups begin.
pub const PREFIX: &str = "pinfold-";

/// What a run started from this process would be kept in, found out by making it and removing it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupFolders {
    /// The folder in which a group that can be killed at a stroke is made.
    pub group: Option<PathBuf>,
    /// The folder in which a group that counts memory is made.
    pub memory: Option<PathBuf>,
}

/// Tries what a run with a memory limit would get.
#[must_use]
pub fn probe() -> GroupFolders {
    let name = PathBuf::from(format!("probe of {}", std::process::id()));
    let Some(group) = Group::make(&name, Contain::GroupAndMemory) else {
        return GroupFolders { group: None, memory: None };
    };
    let below = |folder: Option<&Path>| folder.and_then(Path::parent).map(Path::to_owned);
    GroupFolders { group: below(Some(group.path())), memory: below(group.memory()) }
}
