//! Marks the locks of a run that is gone, so that no later acquirer has to search for it.

use crate::files::facts::facts;
use crate::files::file::{self, LastGrant, LockFileHead};
use crate::files::folder::Folder;
use crate::files::name::FileName;
use crate::files::record::{LockRecord, RunName};
use crate::look::survivors;
use pinfold_kernel::sys;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

impl Folder {
    /// Marks every lock that `run` left unreleased, if nothing of the run is left and the lock is not held.
    /// Ends no process.
    ///
    /// For a supervisor that has seen the holder die: without the mark, the next acquirer would have to judge
    /// the record, perhaps much later.
    pub fn mark_ended(&self, run: &RunName) -> Result<(), Errno> {
        let mut gone = None;
        for name in self.names()? {
            let Some(record) = self.unreleased(&name)?.filter(|record| record.run.as_ref() == Some(run))
            else {
                continue;
            };
            // All locks of a run have one holder, so one look is enough for all of them.
            let gone = match gone {
                Some(gone) => gone,
                None => *gone.insert(survivors::find(&record)?.is_none()),
            };
            if gone {
                self.mark_one(&name, &record)?;
            }
        }
        Ok(())
    }

    /// Returns the record of the last grant of a file, if it was not given back.
    pub(crate) fn unreleased(&self, name: &FileName) -> Result<Option<Box<LockRecord>>, Errno> {
        let Ok(file) = self.open_existing(name, OFlags::RDONLY) else { return Ok(None) };
        match file::left(&file, &LockFileHead::read(&file)?)? {
            LastGrant::Unreleased(record) => Ok(Some(record)),
            LastGrant::Nothing | LastGrant::Released => Ok(None),
        }
    }

    /// Marks one grant under its flock, which is held for two reads and a write; an acquirer that comes then
    /// waits that long.
    fn mark_one(&self, name: &FileName, record: &LockRecord) -> Result<(), Errno> {
        let lock = self.open_existing(name, OFlags::RDWR)?;
        match sys::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        let same = self.unreleased(name)?.is_some_and(|now| now.fence == record.fence);
        if same && !facts(&lock)?.removed { file::write_mark(&lock, record.fence) } else { Ok(()) }
    }
}
