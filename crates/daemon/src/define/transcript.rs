//! The vendor's own file of a session: if there is one, the session is resumed, otherwise begun.

use crate::define::preset::VendorTranscript;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where such a file would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sought {
    /// Where the agent stores its sessions.
    pub(crate) folder: PathBuf,
    /// The file below that folder; a `*` stands for any part of a name.
    pub(crate) pattern: String,
}

impl Sought {
    /// Looks for the file. A folder that cannot be read has none, since its agent will not find one either.
    /// Blocks.
    pub(crate) fn look(&self) -> VendorTranscript {
        let parts: Vec<&str> = self.pattern.split('/').collect();
        if exists(&self.folder, &parts) { VendorTranscript::Exists } else { VendorTranscript::Missing }
    }
}

fn exists(folder: &Path, parts: &[&str]) -> bool {
    match parts {
        [] => true,
        [pattern, rest @ ..] if pattern.contains('*') => {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name());
            names.filter(|name| matches(pattern, name)).any(|name| is_there(folder, &name, rest))
        }
        [name, rest @ ..] => is_there(folder, OsStr::new(name), rest),
    }
}

/// Whether a name matches a pattern in which `*` stands for anything.
fn matches(pattern: &str, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return pattern == "*" };
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(left) = name.strip_prefix(begin) else { return false };
    match rest.rsplit_once('*') {
        // Between the first and the last `*`, the middle may be anywhere.
        Some((middle, end)) => left.strip_suffix(end).is_some_and(|left| left.contains(middle)),
        None => left.ends_with(rest),
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
        assert_eq!(sought("projects/*/a.jsonl").look(), VendorTranscript::Missing);
        std::fs::create_dir_all(temp.path().join("projects/-work")).unwrap();
        std::fs::create_dir_all(temp.path().join("projects/-else")).unwrap();
        assert_eq!(sought("projects/*/a.jsonl").look(), VendorTranscript::Missing);
        std::fs::write(temp.path().join("projects/-work/a.jsonl"), "").unwrap();
        assert_eq!(sought("projects/*/a.jsonl").look(), VendorTranscript::Exists);
        assert_eq!(sought("projects/*/b.jsonl").look(), VendorTranscript::Missing);
        assert_eq!(sought("projects/-work/*").look(), VendorTranscript::Exists);
        assert_eq!(sought("projects/-else/*").look(), VendorTranscript::Missing);
        assert_eq!(sought("projects/-w*k/*.jsonl").look(), VendorTranscript::Exists);
    }

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        let rows = [
            ("*", "a", true),
            ("session-*-0123.jsonl", "session-2026-0123.jsonl", true),
            ("session-*-0123.jsonl", "session-2026-0124.jsonl", false),
            ("a*b", "ab", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c", false),
        ];
        for (pattern, name, expected) in rows {
            assert_eq!(matches(pattern, OsStr::new(name)), expected, "{pattern} {name}");
        }
    }
}
