//! The files with the values given with `--env`, in one folder, one for each change of a session.
//!
//! A file is on disk before the record that names it, and is deleted after that record has gone. So a crash
//! between the two leaves a file without a record, never a record without its file; such files are deleted
//! when the daemon starts.

use crate::define::variables::Map;
use pinfold_kernel::private::{self, Wider};
use pinfold_store::Ulid;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// A distinctive name: many projects have a folder called `env`.
const FOLDER: &str = "env-values";

/// Files by name, with their content.
pub type Files = Vec<(String, Vec<u8>)>;

/// The values folder of one home.
#[derive(Debug, Clone)]
pub struct Values {
    folder: PathBuf,
    /// Held for reading while the database and these files are copied: nothing is deleted meanwhile.
    copied: Arc<RwLock<()>>,
}

impl Values {
    /// The values of the home with this state folder; it need not exist.
    #[must_use]
    pub fn of(state: &Path) -> Values {
        Values { folder: state.join(FOLDER), copied: Arc::default() }
    }

    /// Stores values durably under a new name.
    pub(crate) fn keep(&self, values: &Map) -> io::Result<Ulid> {
        let name = new_name();
        self.write(name, &serde_json::to_vec(values)?, Sync::Now)?;
        self.sync()?;
        Ok(name)
    }

    /// Stores many at once, with one wait for the disk.
    pub(crate) fn keep_all<'a>(&self, all: impl Iterator<Item = &'a Map>) -> io::Result<Vec<Ulid>> {
        let names = all.map(|values| {
            let name = new_name();
            self.write(name, &serde_json::to_vec(values)?, Sync::Later).map(|()| name)
        });
        let names = names.collect::<io::Result<Vec<Ulid>>>()?;
        if !names.is_empty() {
            rustix::fs::syncfs(File::open(&self.folder)?)?;
        }
        Ok(names)
    }

    pub(crate) fn read(&self, name: Ulid) -> io::Result<Map> {
        let mut text = Vec::new();
        self.open(name, OFlags::RDONLY)?.read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Deletes a file that no record names any more; waits for a copy under way.
    pub(crate) fn remove(&self, name: Ulid) {
        let _nobody_copies = self.copied.write().unwrap_or_else(PoisonError::into_inner);
        // If that fails, it is deleted at the next start.
        _ = std::fs::remove_file(self.path(name));
    }

    /// Deletes all files that no record names.
    pub(crate) fn sweep(&self, named: &BTreeSet<Ulid>) {
        for name in self.names() {
            if !named.contains(&name) {
                self.remove(name);
            }
        }
    }

    /// Runs `work` while nothing can be deleted, and lets it read all files.
    pub(crate) fn copied<T>(&self, work: impl FnOnce(&dyn Fn() -> io::Result<Files>) -> T) -> T {
        let _nothing_goes = self.copied.read().unwrap_or_else(PoisonError::into_inner);
        work(&|| {
            let read = |name: Ulid| {
                let mut text = Vec::new();
                self.open(name, OFlags::RDONLY)?.read_to_end(&mut text)?;
                Ok((name.to_string(), text))
            };
            self.names().into_iter().map(read).collect()
        })
    }

    /// Copies all files to another folder, for the database that is about to be replaced.
    ///
    /// # Errors
    /// The other folder cannot be made.
    pub fn keep_aside(&self) -> io::Result<()> {
        let aside = Values { folder: self.folder.with_extension("old"), copied: Arc::default() };
        aside.sweep(&BTreeSet::new());
        for name in self.names() {
            private::make_private(&aside.folder, Wider::Refuse)?;
            std::fs::hard_link(self.path(name), aside.path(name))?;
        }
        Ok(())
    }

    /// Puts back files from a copy; a file that exists under the same name is the same.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn put_back(&self, files: &Files) -> io::Result<()> {
        for (name, text) in files {
            let name = name.parse::<Ulid>().map_err(io::Error::other)?;
            match self.write(name, text, Sync::Now) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => done?,
            }
        }
        if files.is_empty() { Ok(()) } else { self.sync() }
    }

    fn path(&self, name: Ulid) -> PathBuf {
        self.folder.join(name.to_string())
    }

    fn names(&self) -> Vec<Ulid> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    fn write(&self, name: Ulid, text: &[u8], sync: Sync) -> io::Result<()> {
        private::make_private(&self.folder, Wider::Refuse)?;
        let mut file = self.open(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        let written = file.write_all(text).and_then(|()| match sync {
            Sync::Now => file.sync_all(),
            Sync::Later => Ok(()),
        });
        written.inspect_err(|_| _ = std::fs::remove_file(self.path(name)))
    }

    fn open(&self, name: Ulid, how: OFlags) -> io::Result<File> {
        let how = how | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::open(self.path(name), how, Mode::RUSR | Mode::WUSR)?.into())
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

/// When a file must be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    Now,
    Later,
}

/// A name that no other file has.
fn new_name() -> Ulid {
    Ulid::new(u64::try_from(crate::clock::wall().0).unwrap_or(0), crate::clock::dice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn map(value: &str) -> Map {
        Map::from([("TOKEN".to_owned(), value.to_owned())])
    }

    #[test]
    fn what_is_kept_is_private_and_read_again() {
        let temp = tempfile::tempdir().unwrap();
        let values = Values::of(temp.path());
        let name = values.keep(&map("secret")).unwrap();
        assert_eq!(values.read(name).unwrap(), map("secret"));
        let folder = temp.path().join(FOLDER);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(name.to_string()))), (0o700, 0o600));
        values.remove(name);
        values.read(name).unwrap_err();
    }

    #[test]
    fn only_what_no_record_names_is_swept() {
        let temp = tempfile::tempdir().unwrap();
        let values = Values::of(temp.path());
        let names = values.keep_all([map("a"), map("b")].iter()).unwrap();
        std::fs::write(temp.path().join(FOLDER).join("foreign"), "not ours").unwrap();
        values.sweep(&BTreeSet::from([names[1]]));
        values.read(names[0]).unwrap_err();
        assert_eq!(values.read(names[1]).unwrap(), map("b"));
        assert!(temp.path().join(FOLDER).join("foreign").exists());
    }

    #[test]
    fn what_was_copied_can_be_put_back() {
        let temp = tempfile::tempdir().unwrap();
        let values = Values::of(temp.path());
        let name = values.keep(&map("a")).unwrap();
        let copied = values.copied(|read| read()).unwrap();
        values.put_back(&copied).unwrap();
        values.remove(name);
        values.put_back(&copied).unwrap();
        assert_eq!(values.read(name).unwrap(), map("a"));
        values.put_back(&vec![("../x".into(), Vec::new())]).unwrap_err();
    }
}
