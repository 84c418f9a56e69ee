//! Which other process has a session's vendor session: one that is in it, or the vendor's own daemon, which
//! keeps it.

use crate::define::definition::Definition;
use crate::define::id_files::{IdFiles, Outsider, ToldBy};
use crate::define::preset::Preset;
use crate::define::vendor_daemon::VendorDaemonFiles;
use pinfold_kernel::proc;
use std::io;
use std::path::PathBuf;

/// Where to look for other users of one vendor session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Others {
    pub(crate) files: IdFiles,
    pub(crate) daemon: Option<VendorDaemonFiles>,
    pub(crate) session: String,
}

impl Others {
    /// The place to look for a session's vendor session, if its agent's processes say which one they are in.
    pub(crate) fn of(definition: &Definition, preset: &Preset) -> Option<Others> {
        let session = definition.vendor_session.clone()?;
        let (files, daemon) = (IdFiles::of(definition, preset)?, VendorDaemonFiles::of(definition, preset));
        Some(Others { files, daemon, session })
    }

    /// The process that has the session. The vendor's daemon comes first: it restarts what is ended. Blocks.
    /// What cannot be read is an error, never "not in use".
    pub(crate) fn look(&self) -> io::Result<Option<Outsider>> {
        match self.keeper()? {
            Some(keeper) => Ok(Some(keeper)),
            None => self.inside(),
        }
    }

    fn keeper(&self) -> io::Result<Option<Outsider>> {
        self.daemon.as_ref().map_or(Ok(None), |daemon| daemon.keeping(&self.session))
    }

    /// A process that is in the session.
    fn inside(&self) -> io::Result<Option<Outsider>> {
        for pid in self.files.pids()? {
            let said = self.files.read_whole(pid)?;
            let here = said.filter(|said| said.session.as_ref() == Some(&self.session));
            if let Some(start_ticks) = here.and_then(|said| said.start_ticks) {
                let command = proc::command(pid);
                return Ok(Some(Outsider { pid, start_ticks, command, told_by: ToldBy::IdFile }));
            }
        }
        Ok(None)
    }

    /// Whether this outsider still has it. Blocks; if that cannot be read, it still has it.
    pub(crate) fn has(&self, outsider: &Outsider) -> bool {
        let same = |pid: u32, ticks: Option<u64>| (pid, ticks) == (outsider.pid, Some(outsider.start_ticks));
        match outsider.told_by {
            ToldBy::Roster => self.keeper().map_or(true, |keeper| {
                keeper.is_some_and(|keeper| same(keeper.pid, Some(keeper.start_ticks)))
            }),
            ToldBy::IdFile => self.files.read_whole(outsider.pid).map_or(true, |said| {
                let here = said.filter(|said| said.session.as_ref() == Some(&self.session));
                here.is_some_and(|said| same(outsider.pid, said.start_ticks))
            }),
        }
    }

    /// The file that says so about this outsider.
    pub(crate) fn told_in(&self, outsider: &Outsider) -> PathBuf {
        match (outsider.told_by, &self.daemon) {
            (ToldBy::Roster, Some(daemon)) => daemon.roster.clone(),
            (ToldBy::Roster | ToldBy::IdFile, _) => self.files.file_of(outsider.pid),
        }
    }
}

#[cfg(test)]
mod tests;
