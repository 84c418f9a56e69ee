//! The vendor's own file of a session: where there is one, the session is resumed, and begun where there is none.

use crate::define::preset::Transcript;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where such a file would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sought {
    /// Where the agent keeps its sessions.
    pub(crate) folder: PathBuf,
    /// The file below it; a part that is `*` stands for any name.
    pub(crate) pattern: String,
}

impl Sought {
    /// Looks for it. A folder that cannot be read has none, as far as its agent will find. Blocks.
    pub(crate) fn look(&self) -> Transcript {
        let parts: Vec<&str> = self.pattern.split('/').collect();
        if exists(&self.folder, &parts) { Transcript::Exists } else { Transcript::Missing }
    }
}

fn exists(folder: &Path, parts: &[&str]) -> bool {
    match parts {
        [] => true,
        ["*", rest @ ..] => {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name()).any(|name| is_there(folder, &name, rest))
        }
        [name, rest @ ..] => is_there(folder, OsStr::new(name), rest),
    }
}

fn is_there(folder: &Path, name: &OsStr, rest: &[&str]) -> bool {
    let path = folder.join(name);
    if rest.is_empty() { path.exists() } else { exists(&path, rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_in_any_folder_where_the_pattern_has_a_star() {
        let temp = tempfile::tempdir().unwrap();
        let sought = |pattern: &str| Sought { folder: temp.path().to_owned(), pattern: pattern.to_owned() };
        assert_eq!(sought("projects/*/a.jsonl").look(), Transcript::Missing);
        std::fs::create_dir_all(temp.path().join("projects/-work")).unwrap();
        std::fs::create_dir_all(temp.path().join("projects/-else")).unwrap();
        assert_eq!(sought("projects/*/a.jsonl").look(), Transcript::Missing);
        std::fs::write(temp.path().join("projects/-work/a.jsonl"), "").unwrap();
        assert_eq!(sought("projects/*/a.jsonl").look(), Transcript::Exists);
        assert_eq!(sought("projects/*/b.jsonl").look(), Transcript::Missing);
        assert_eq!(sought("projects/-work/*").look(), Transcript::Exists);
        assert_eq!(sought("projects/-else/*").look(), Transcript::Missing);
    }
}
