//! The spool of a session: what a hook of its terminal program told last.
//!
//! Whatever the agent has put there instead, reading it neither waits nor takes long.

use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Hooks are told a few paths and words; a longer text is not one of theirs.
const LONGEST: u64 = 64 << 10;

pub(super) fn read(file: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Mode::empty())?;
    let mut told = Vec::new();
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::RegularFile {
        File::from(file).take(LONGEST).read_to_end(&mut told)?;
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_nothing_else_is_waited_for_or_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("spool"), "r1 {}").unwrap();
        assert_eq!(read(&at("spool")).unwrap(), b"r1 {}");
        std::fs::write(at("long"), vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(read(&at("long")).unwrap().len() as u64, LONGEST);
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(read(&at("pipe")).unwrap(), b"");
        assert_eq!(read(folder.path()).unwrap(), b"");
        std::os::unix::fs::symlink("spool", at("link")).unwrap();
        assert!(read(&at("link")).is_err());
        assert!(read(&at("none")).is_err());
    }
}
