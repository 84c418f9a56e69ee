//! Git worktrees of sessions: made by `new --worktree`, removed by `rm --worktree`, measured by `show`.
//!
//! A worktree is beside its repository, in `REPOSITORY.worktrees/BRANCH`: where people look for it, on the
//! same disk, and outside of the repository, so that no tool in there walks into it.
//!
//! An agent can write all of its worktree, so nothing in there is believed: `record` compares it with what was
//! recorded when it was made, and `git` runs no program that it names.

mod folder;
mod git;
mod make;
mod record;
mod remove;
mod settings;
mod size;
mod work;

pub(crate) use make::{MadeWorktree, make};
pub(crate) use remove::{Removal, remove};
pub(crate) use size::shown;
