//! Which process holds what a run could not get, as its agent tells: in a line that it printed, or in a file with
//! the holder's pid. Neither is proof, so the session is tried again in any case.

use super::id_files::started;
use crate::define::preset::pid_in;
use pinfold_core::life::HolderSeen;
use pinfold_kernel::proc;
use rustix::fs::{Mode, OFlags};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file with a pid is short.
const LONGEST_FILE: u64 = 4096;

/// Where the holder is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HolderClue {
    /// The file in which it writes its pid.
    pub(crate) file: Option<PathBuf>,
    /// The pid in a line of the agent.
    pub(crate) pid: Option<u32>,
}

impl HolderClue {
    /// Whether there is anything to look at.
    pub(crate) fn is_empty(&self) -> bool {
        *self == HolderClue::default()
    }

    /// Returns the living process that is named. Blocks.
    pub(crate) fn look(&self) -> Option<HolderSeen> {
        let in_file = self.file.as_deref().and_then(|file| {
            let pid = living(pid_of(&read(file)?)?)?;
            Some((file.display().to_string(), pid))
        });
        let (resource, pid) = in_file.or_else(|| {
            let resource = self.file.as_ref().map(|file| file.display().to_string());
            Some((resource.unwrap_or_else(|| "its lock".to_owned()), living(self.pid?)?))
        })?;
        let command = Some(proc::command(pid)).filter(|command| !command.is_empty());
        Some(HolderSeen { resource, pid: Some(pid), command, session: None, since: None })
    }
}

/// Returns the pid if such a process is alive, and is not this daemon.
fn living(pid: u32) -> Option<u32> {
    let is_other = pid > 1 && pid != std::process::id();
    (is_other && started(pid).is_ok_and(|started| started.is_some())).then_some(pid)
}

/// Returns the pid in the text of such a file: the one that it calls so, or its first word.
fn pid_of(text: &str) -> Option<u32> {
    pid_in(text).or_else(|| text.split_whitespace().next()?.parse().ok())
}

/// Reads a regular file; a FIFO would keep us waiting.
fn read(file: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(file, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(LONGEST_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is alive until it is dropped.
    struct Alive(std::process::Child);

    impl Alive {
        fn new() -> Alive {
            Alive(std::process::Command::new("sleep").arg("1000").spawn().unwrap())
        }
    }

    impl Drop for Alive {
        fn drop(&mut self) {
            _ = self.0.kill();
            _ = self.0.wait();
        }
    }

    #[test]
    fn the_living_process_that_is_named_is_the_holder() {
        let temp = tempfile::tempdir().unwrap();
        let (holder, gone) = (Alive::new(), Alive::new());
        let (pid, dead) = (holder.0.id(), gone.0.id());
        drop(gone);
        let file = temp.path().join("lock");
        let texts = [
            (format!("{pid}\n"), Some(pid)),
            (format!("{{\"host\": \"h\", \"pid\": {pid}}}"), Some(pid)),
            (format!("{dead}\n"), None),
            (format!("{}\n", std::process::id()), None),
            ("1\n".to_owned(), None),
            ("\n".to_owned(), None),
            (String::new(), None),
        ];
        for (text, expected) in texts {
            std::fs::write(&file, &text).unwrap();
            let seen = HolderClue { file: Some(file.clone()), pid: None }.look();
            assert_eq!(seen.as_ref().and_then(|seen| seen.pid), expected, "{text:?}");
            assert!(seen.is_none_or(|seen| seen.resource == file.display().to_string()));
        }
        // A line helps if the file does not.
        let seen = HolderClue { file: Some(file), pid: Some(pid) }.look();
        assert_eq!(seen.and_then(|seen| seen.pid), Some(pid));
        let seen = HolderClue { file: None, pid: Some(pid) }.look().unwrap();
        assert_eq!((seen.resource.as_str(), seen.command.as_deref()), ("its lock", Some("sleep 1000")));
        assert_eq!(HolderClue { file: Some(temp.path().to_owned()), pid: Some(dead) }.look(), None);
    }
}
