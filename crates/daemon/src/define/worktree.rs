//! The record of a session's git worktree: written once by `new --worktree`, and never changed.
//!
//! The daemon never reads a worktree. It only keeps a record that cannot name anything else than a linked
//! worktree; `rm --worktree` compares the record with the files.

use crate::define::bad_definition::BadDefinition;
use pinfold_api::request::SessionWorktree;
use std::path::{Component, Path};

/// The longest path that the kernel accepts.
const LONGEST_PATH: usize = 4096;

/// Checks that a record is one that `new --worktree` writes.
pub(crate) fn checked(record: SessionWorktree) -> Result<SessionWorktree, BadDefinition> {
    let SessionWorktree { path, repository, gitdir, commondir, created: _ } = &record;
    let all_plain = [path, repository, gitdir, commondir].into_iter().all(|path| is_plain(path));
    let folder = Path::new(gitdir).parent();
    if all_plain && folder == Some(&Path::new(commondir).join("worktrees")) {
        return Ok(record);
    }
    Err(BadDefinition::NotAWorktree { path: record.path })
}

/// An absolute path without `.` and `..`.
fn is_plain(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    path.len() <= LONGEST_PATH
        && parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Refuses a request that names another worktree than the session's. `apply` repeats the one it has.
pub(crate) fn unchanged(
    own: Option<&SessionWorktree>,
    wanted: Option<&SessionWorktree>,
) -> Result<(), BadDefinition> {
    if wanted.is_none() || own == wanted { Ok(()) } else { Err(BadDefinition::OtherWorktree) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &str, gitdir: &str, commondir: &str) -> SessionWorktree {
        let (path, gitdir, commondir) = (path.to_owned(), gitdir.to_owned(), commondir.to_owned());
        SessionWorktree { path, repository: "/src/api".to_owned(), gitdir, commondir, created: true }
    }

    #[test]
    fn a_record_names_a_linked_worktree_of_its_repository() {
        let long = format!("/{}", "x".repeat(LONGEST_PATH));
        let rows = [
            ("/src/api.worktrees/fix", "/src/api/.git/worktrees/fix", "/src/api/.git", true),
            ("/src/api.worktrees/fix", "/src/api.git/worktrees/fix", "/src/api.git", true),
            ("fix", "/src/api/.git/worktrees/fix", "/src/api/.git", false),
            ("/src/../etc", "/src/api/.git/worktrees/fix", "/src/api/.git", false),
            ("/src/fix", "/src/api/.git", "/src/api/.git", false),
            ("/src/fix", "/elsewhere/worktrees/fix", "/src/api/.git", false),
            ("/src/fix", "/src/api/.git/worktrees/..", "/src/api/.git", false),
            (&long, "/src/api/.git/worktrees/fix", "/src/api/.git", false),
            ("", "", "", false),
        ];
        for (path, gitdir, commondir, good) in rows {
            assert_eq!(checked(record(path, gitdir, commondir)).is_ok(), good, "{path} {gitdir} {commondir}");
        }
    }

    #[test]
    fn the_record_of_a_session_cannot_be_changed_or_given_later() {
        let one = record("/src/fix", "/src/api/.git/worktrees/fix", "/src/api/.git");
        let other = SessionWorktree { created: false, ..one.clone() };
        assert_eq!(unchanged(Some(&one), None), Ok(()));
        assert_eq!(unchanged(Some(&one), Some(&one)), Ok(()));
        assert_eq!(unchanged(Some(&one), Some(&other)), Err(BadDefinition::OtherWorktree));
        assert_eq!(unchanged(None, Some(&one)), Err(BadDefinition::OtherWorktree));
        assert_eq!(unchanged(None, None), Ok(()));
    }
}
