//! Git worktrees of sessions: made by `new --worktree`, removed by `rm --worktree`, measured by `show`.
//!
//! A worktree is beside its repository, in `REPOSITORY.worktrees/BRANCH`: where people look for it, on the
//! same disk, and outside of the repository, so that no tool in there walks into it.

mod git;
mod make;
mod remove;
mod size;

pub(crate) use make::{MadeWorktree, make};
pub(crate) use remove::remove;
pub(crate) use size::shown;
