//! The ways of harming a file.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    Removed,
    Moved,
    Garbage,
    Anothers,
    Emptied,
    Halved,
}

/// What is needed to put a file back.
pub(super) struct Harmed {
    file: PathBuf,
    aside: PathBuf,
    moved: bool,
}

impl Harm {
    pub(super) const ALL: [Harm; 6] =
        [Harm::Removed, Harm::Moved, Harm::Garbage, Harm::Anothers, Harm::Emptied, Harm::Halved];

    /// Harms a file. A copy of it, or the moved file itself, is kept aside; `anothers` is the same file of
    /// another home.
    pub(super) fn do_to(self, file: &Path, aside: &Path, anothers: Option<&Path>) -> Harmed {
        let socket = fs::symlink_metadata(file).unwrap().file_type().is_socket();
        let moved = self == Harm::Moved || socket;
        if moved {
            fs::rename(file, aside).unwrap();
        } else {
            fs::copy(file, aside).unwrap();
        }
        match self {
            Harm::Moved => {}
            Harm::Removed => missing_is_fine(fs::remove_file(file)),
            // Into the existing file, as `cp` does.
            Harm::Garbage => fs::write(file, vec![0x55; 10_000]).unwrap(),
            Harm::Emptied => fs::write(file, "").unwrap(),
            Harm::Halved if socket => fs::write(file, "").unwrap(),
            Harm::Halved => halve(file),
            // A socket without a listener.
            Harm::Anothers if socket => drop(UnixListener::bind(file).unwrap()),
            Harm::Anothers => replace(file, anothers),
        }
        Harmed { file: file.to_owned(), aside: aside.to_owned(), moved }
    }
}

fn missing_is_fine(done: std::io::Result<()>) {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    }
}

fn halve(file: &Path) {
    let file = fs::OpenOptions::new().write(true).open(file).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
}

/// Replaces the file as `mv` does.
fn replace(file: &Path, anothers: Option<&Path>) {
    let draft = file.with_extension("draft");
    match anothers {
        Some(anothers) => _ = fs::copy(anothers, &draft).unwrap(),
        None => fs::write(&draft, "of another home\n").unwrap(),
    }
    fs::rename(&draft, file).unwrap();
}

impl Harmed {
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Puts the file back as it was.
    pub(super) fn put_back(&self) {
        if self.moved {
            fs::rename(&self.aside, &self.file).unwrap();
        } else {
            fs::copy(&self.aside, &self.file).unwrap();
        }
    }
}
