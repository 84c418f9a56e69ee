//! A vendor's own daemon that keeps sessions in the background.
//!
//! It restarts a session that was ended, seconds later: meanwhile no process is in that session, and only the
//! daemon's roster shows it. The roster counts only while the daemon is alive, identified by its start time.

use crate::define::definition::Definition;
use crate::define::id_files::{Outsider, TORN, ToldBy, is_missing, read_bounded, started};
use crate::define::preset::{self, LONGEST_ID_FILE, LONGEST_ROSTER, Preset};
use pinfold_kernel::proc;
use std::io;
use std::path::{Path, PathBuf};

/// The files of the daemon: about itself, and about what it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VendorDaemonFiles {
    pub(crate) file: PathBuf,
    pub(crate) roster: PathBuf,
    pub(crate) keys: preset::VendorDaemon,
}

impl VendorDaemonFiles {
    /// The vendor daemon of a session's agent, if its preset has one.
    pub(crate) fn of(definition: &Definition, preset: &Preset) -> Option<VendorDaemonFiles> {
        let keys = preset.vendor_daemon.clone()?;
        let store = preset.store.as_ref()?.folder(|name| definition.env.get(name))?;
        let (file, roster) = (Path::new(&store).join(&keys.file), Path::new(&store).join(&keys.roster));
        Some(VendorDaemonFiles { file, roster, keys })
    }

    /// The daemon, if it is alive and keeps this session. Blocks. What cannot be read is an error, never "not
    /// in use".
    pub(crate) fn keeping(&self, session: &str) -> io::Result<Option<Outsider>> {
        let Some(process) = read(&self.file, LONGEST_ID_FILE, |text| self.keys.process(text))? else {
            return Ok(None);
        };
        let (pid, start_ticks) = process;
        if started(pid)? != Some(start_ticks) {
            return Ok(None);
        }
        let keeps = read(&self.roster, LONGEST_ROSTER, |text| self.keys.keeps(text, session))?;
        let it = || Outsider { pid, start_ticks, command: proc::command(pid), told_by: ToldBy::Roster };
        Ok(keeps.unwrap_or(false).then(it))
    }
}

/// Reads a file. One that is being written is waited for; a missing or never complete one counts as `None`.
fn read<T>(file: &Path, longest: u64, meaning: impl Fn(&[u8]) -> Option<T>) -> io::Result<Option<T>> {
    for _ in 0..TORN.0 {
        match read_bounded(file, longest) {
            Ok(text) => match meaning(&text) {
                Some(said) => return Ok(Some(said)),
                None => std::thread::sleep(TORN.1),
            },
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
