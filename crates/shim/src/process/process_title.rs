//! The process's name in lists: its command line, which a forked process inherits from its parent.

use super::raw;
use pinfold_kernel::proc::stat::Stat;
use pinfold_kernel::sys;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The part of the command line that may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Title {
    from: usize,
    length: usize,
}

impl Title {
    /// Returns the part from `word` on, if the word is there.
    pub(super) fn from_word_on(word: &str) -> Option<Self> {
        let words: Vec<OsString> = std::env::args_os().collect();
        let before = words.iter().position(|found| found == word)?;
        let skip: usize = words[..before].iter().map(|found| found.as_bytes().len() + 1).sum();
        let line = sys::read_file(Path::new("/proc/self/stat")).ok()?;
        let (start, end) = Stat::parse(&line)?.arguments()?;
        let whole: usize = words.iter().map(|found| found.as_bytes().len() + 1).sum();
        // If the kernel's addresses do not match our words, nothing is written.
        (end.checked_sub(start)? == whole).then(|| Self { from: start + skip, length: whole - skip })
    }

    /// Shows `text` there, as far as there is room.
    pub(super) fn write(&self, text: &[u8]) {
        let length = text.len().min(self.length - 1);
        raw::write_words(self.from, self.length, &text[..length]);
    }
}
