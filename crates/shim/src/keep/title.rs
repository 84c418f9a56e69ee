//! What a process is called in lists: the words of its command line, which a forked one has from its parent.

use super::raw;
use super::tree::read;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The part of the command line that may be written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Title {
    from: usize,
    length: usize,
}

impl Title {
    /// The words from `word` on, if there is one.
    pub(super) fn from_word_on(word: &str) -> Option<Self> {
        let words: Vec<OsString> = std::env::args_os().collect();
        let before = words.iter().position(|found| found == word)?;
        let skip: usize = words[..before].iter().map(|found| found.as_bytes().len() + 1).sum();
        let (start, end) = place(&read(Path::new("/proc/self/stat"))?)?;
        let whole: usize = words.iter().map(|found| found.as_bytes().len() + 1).sum();
        // Where the kernel tells of another place than that of our words, nothing is written.
        (end.checked_sub(start)? == whole).then(|| Self { from: start + skip, length: whole - skip })
    }

    /// Shows `text` there, as far as there is room.
    pub(super) fn write(&self, text: &[u8]) {
        let length = text.len().min(self.length - 1);
        raw::write_words(self.from, self.length, &text[..length]);
    }
}

/// Where the command line is, from a stat line: fields 48 and 49.
fn place(stat: &str) -> Option<(usize, usize)> {
    // The name before it may hold anything, also `)`: the last one ends it, and the next field is number 3.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(48 - 3);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_read_behind_any_name() {
        let rest: Vec<String> = (3..=52).map(|number| number.to_string()).collect();
        let line = format!("7 (a) b) {}", rest.join(" "));
        assert_eq!(place(&line), Some((48, 49)));
        assert_eq!(place("7 (a) S 1 2"), None);
    }
}
