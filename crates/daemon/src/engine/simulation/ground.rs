//! What all cases share: a home on disk for the few files that the loop reads itself, and the numbers of
//! policies.

use crate::define::config::Config;
use crate::define::home::Home;
use crate::ports::locks::Folders;
use std::path::Path;

/// How many sets of numbers there are.
pub(super) const VARIANTS: u8 = 30;

/// Few, so that cases reach the limit. The same in all sets: a set with fewer would put turns under way over
/// it.
const MESSAGE_TRIES: u32 = 2;

pub(super) struct Ground {
    pub(super) home: Home,
    pub(super) folders: Folders,
    pub(super) config: Config,
    _folder: tempfile::TempDir,
}

impl Ground {
    pub(super) fn new() -> Ground {
        // Files that only the next daemon reads back need no disk.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("a folder");
        let state = folder.path().join("home");
        std::fs::create_dir_all(&state).expect("a folder");
        let home = Home {
            runtime: state.clone(),
            config: state.join("config.toml"),
            user_locks: folder.path().join("locks"),
            variables: Vec::new(),
            refused: None,
            state,
        };
        let folders = Folders::open(&home).expect("lock folders");
        Ground { folders, config: Config::parse(&numbers()).expect("a configuration"), home, _folder: folder }
    }

    /// Gives the case an empty disk.
    pub(super) fn sweep(&self) {
        _ = std::fs::remove_file(self.home.stops());
        _ = std::fs::remove_dir_all(self.home.state.join("sessions"));
    }
}

fn numbers() -> String {
    let of = |variant: u8| {
        let hard = if variant % 3 == 2 { 0 } else { 6 };
        let watchdog = if variant % 5 == 4 { 90 } else { 0 };
        let resume = variant % 2 == 1;
        format!(
            "[agents.v{variant}.policy]\ncrash_soft_limit = 3\ncontention_limit = 3\ncrash_hard_limit = {hard}\n\
             watchdog = \"{watchdog}s\"\nlimit_resume = {resume}\nidle_after = \"20s\"\n\
             message_tries = {MESSAGE_TRIES}\n"
        )
    };
    (0..VARIANTS).map(of).collect()
}
