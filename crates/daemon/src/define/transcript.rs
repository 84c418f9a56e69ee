//! The vendor's own file of a session: if there is one, the session is resumed, otherwise begun.

use crate::define::definition::Definition;
use crate::define::preset::{Preset, VendorTranscript};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where such a file would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sought {
    /// Where the agent stores its sessions.
    pub(crate) folder: PathBuf,
    /// The file below that folder; a `*` stands for any part of a name.
    pub(crate) pattern: String,
}

impl Sought {
    /// Looks for the file. A folder that cannot be read is an error: the file may be in it. Blocks.
    pub(crate) fn look(&self) -> Result<VendorTranscript, UnreadablePlace> {
        Ok(if self.find()?.is_some() { VendorTranscript::Exists } else { VendorTranscript::Missing })
    }

    /// Deletes the file, if there is one. If several match, one of them may be of another conversation, and none
    /// is deleted. Blocks.
    pub(crate) fn delete(&self) -> io::Result<()> {
        match &self.all().map_err(|unreadable| unreadable.error)?[..] {
            [] => Ok(()),
            [(_, path)] => std::fs::remove_file(path),
            several => {
                let text =
                    format!("{} files match {}/{}", several.len(), self.folder.display(), self.pattern);
                Err(io::Error::other(text))
            }
        }
    }

    /// Returns the path of the file; of the newest, if there are several. Blocks.
    pub(crate) fn find(&self) -> Result<Option<PathBuf>, UnreadablePlace> {
        let newest = self.all()?.into_iter().max_by_key(|(changed, _)| *changed);
        Ok(newest.map(|(_, path)| path))
    }

    /// Returns all files that match, with the times of their last changes.
    fn all(&self) -> Result<Vec<(Option<SystemTime>, PathBuf)>, UnreadablePlace> {
        let parts: Vec<&str> = self.pattern.split('/').collect();
        let mut found = Vec::new();
        search(&self.folder, &parts, &mut found)?;
        Ok(found)
    }
}

impl Definition {
    /// The folder in which its agent stores its conversations, if the preset says so.
    pub(crate) fn store_of(&self, preset: &Preset) -> Option<PathBuf> {
        preset.store.as_ref()?.folder(|name| self.env.get(name)).map(PathBuf::from)
    }

    /// The same as a person would write it.
    pub(crate) fn place_of_store(&self, preset: &Preset) -> Option<String> {
        let folder = self.store_of(preset)?;
        let below = self.env.get("HOME").and_then(|home| folder.strip_prefix(home).ok());
        Some(match below {
            Some(below) => format!("~/{}", below.display()),
            None => folder.display().to_string(),
        })
    }

    /// Where the vendor's file of its session would be, if the preset says so.
    pub(crate) fn transcript(&self, preset: &Preset) -> Option<Sought> {
        let pattern = preset.transcript_of(self.vendor_session.as_deref()?)?;
        Some(Sought { folder: self.store_of(preset)?, pattern })
    }
}

/// A place in which the file may be, and that cannot be read.
#[derive(Debug)]
pub(crate) struct UnreadablePlace {
    pub(crate) path: PathBuf,
    pub(crate) error: io::Error,
}

fn search(
    folder: &Path,
    parts: &[&str],
    found: &mut Vec<(Option<SystemTime>, PathBuf)>,
) -> Result<(), UnreadablePlace> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    if !first.contains('*') {
        return search_in(&folder.join(first), rest, found);
    }
    let unreadable = |error| UnreadablePlace { path: folder.to_owned(), error };
    let Some(entries) = there(std::fs::read_dir(folder)).map_err(unreadable)? else { return Ok(()) };
    for entry in entries {
        let name = entry.map_err(unreadable)?.file_name();
        if matches(first, &name) {
            search_in(&folder.join(name), rest, found)?;
        }
    }
    Ok(())
}

fn search_in(
    path: &Path,
    rest: &[&str],
    found: &mut Vec<(Option<SystemTime>, PathBuf)>,
) -> Result<(), UnreadablePlace> {
    if !rest.is_empty() {
        return search(path, rest, found);
    }
    let facts = there(std::fs::metadata(path));
    let facts = facts.map_err(|error| UnreadablePlace { path: path.to_owned(), error })?;
    found.extend(
        facts.filter(std::fs::Metadata::is_file).map(|facts| (facts.modified().ok(), path.to_owned())),
    );
    Ok(())
}

/// `None` for what is not there; any other error says nothing about that.
pub(crate) fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_in_any_folder_where_the_pattern_has_a_star() {
        let temp = tempfile::tempdir().unwrap();
        let sought = |pattern: &str| Sought { folder: temp.path().to_owned(), pattern: pattern.to_owned() };
        assert_eq!(sought("projects/*/a.jsonl").look().unwrap(), VendorTranscript::Missing);
        std::fs::create_dir_all(temp.path().join("projects/-work")).unwrap();
        std::fs::create_dir_all(temp.path().join("projects/-else")).unwrap();
        assert_eq!(sought("projects/*/a.jsonl").look().unwrap(), VendorTranscript::Missing);
        std::fs::write(temp.path().join("projects/-work/a.jsonl"), "").unwrap();
        assert_eq!(sought("projects/*/a.jsonl").look().unwrap(), VendorTranscript::Exists);
        assert_eq!(sought("projects/*/b.jsonl").look().unwrap(), VendorTranscript::Missing);
        assert_eq!(sought("projects/-work/*").look().unwrap(), VendorTranscript::Exists);
        assert_eq!(sought("projects/-else/*").look().unwrap(), VendorTranscript::Missing);
        assert_eq!(sought("projects/-w*k/*.jsonl").look().unwrap(), VendorTranscript::Exists);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_not_one_without_the_file() {
        let temp = tempfile::tempdir().unwrap();
        let sought = |pattern: &str| Sought { folder: temp.path().to_owned(), pattern: pattern.to_owned() };
        // A link to itself cannot be followed, whoever asks.
        std::os::unix::fs::symlink("loop", temp.path().join("loop")).unwrap();
        for pattern in ["loop/*/a.jsonl", "loop/a.jsonl", "loop", "*/a.jsonl"] {
            let unreadable = sought(pattern).look().unwrap_err();
            assert!(unreadable.path.starts_with(temp.path().join("loop")), "{pattern}: {unreadable:?}");
        }
        std::fs::write(temp.path().join("file"), "").unwrap();
        for pattern in ["file/a.jsonl", "file/*/a.jsonl", "none/*/a.jsonl"] {
            assert_eq!(sought(pattern).look().unwrap(), VendorTranscript::Missing, "{pattern}");
        }
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
