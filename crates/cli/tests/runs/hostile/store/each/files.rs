//! Every file in a home and in the lock folder, by its purpose.

use crate::world::World;
use std::path::{Path, PathBuf};

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Database,
    Log,
    Index,
    Witness,
    Reserve,
    Stops,
    Marker,
    /// The values given to a session; without them it is damaged, and not started.
    Values,
    DaemonLock,
    DaemonPlace,
    DaemonLog,
    Audit,
    Config,
    Socket,
    ShimSocket,
    Output,
    Exits,
    Turn,
    SessionLock,
    SessionLedger,
    SessionTest,
    DirectoryLock,
    PathLock,
    KeyLock,
    Gate,
    Ledger,
    Test,
    /// The old database kept by `restore-backup`; only people look at it.
    Old,
    /// Finds words in all the others; an unreadable one is made again.
    Search,
    SearchLog,
    SearchIndex,
    /// The key of the hashes in account names; a lost one is made again.
    AccountKey,
}

impl Kind {
    pub(super) const ALL: [Kind; 30] = [
        Kind::Database,
        Kind::Log,
        Kind::Index,
        Kind::Witness,
        Kind::Reserve,
        Kind::Stops,
        Kind::Marker,
        Kind::DaemonLock,
        Kind::DaemonPlace,
        Kind::DaemonLog,
        Kind::Audit,
        Kind::Config,
        Kind::Socket,
        Kind::ShimSocket,
        Kind::Output,
        Kind::Exits,
        Kind::Turn,
        Kind::SessionLock,
        Kind::SessionLedger,
        Kind::SessionTest,
        Kind::DirectoryLock,
        Kind::PathLock,
        Kind::KeyLock,
        Kind::Gate,
        Kind::Ledger,
        Kind::Test,
        Kind::Search,
        Kind::SearchLog,
        Kind::SearchIndex,
        Kind::AccountKey,
    ];

    /// The kind of the file at a path; `root` contains the home and the lock folder.
    fn of(path: &Path, root: &Path) -> Kind {
        let inside = path.strip_prefix(root).unwrap();
        let words: Vec<&str> = inside.iter().map(|word| word.to_str().unwrap()).collect();
        match words[..] {
            ["home", "pinfold.db"] => Kind::Database,
            ["home", "pinfold.db-wal"] => Kind::Log,
            ["home", "pinfold.db-shm"] => Kind::Index,
            ["home", "pinfold.db.old" | "pinfold.db.old-wal"] => Kind::Old,
            ["home", "search.db"] => Kind::Search,
            ["home", "search.db-wal"] => Kind::SearchLog,
            ["home", "search.db-shm"] => Kind::SearchIndex,
            ["home", "account.key"] => Kind::AccountKey,
            ["home", "witness"] => Kind::Witness,
            ["home", "reserve"] => Kind::Reserve,
            ["home", "stops"] => Kind::Stops,
            ["home", ".pinfold-home"] => Kind::Marker,
            ["home", "env-values", _] => Kind::Values,
            ["home", "env-values.old", _] => Kind::Old,
            ["home", "daemon.lock"] => Kind::DaemonLock,
            ["home", "daemon.place" | "daemon.stopped"] => Kind::DaemonPlace,
            ["home", "daemon.log"] => Kind::DaemonLog,
            ["home", "audit.jsonl"] => Kind::Audit,
            ["home", "config.toml"] => Kind::Config,
            ["home", "pinfold.sock"] => Kind::Socket,
            ["home", "shims", name] if name.ends_with(".sock") => Kind::ShimSocket,
            ["home", "sessions", _, "output.log"] => Kind::Output,
            ["home", "sessions", _, "exits"] => Kind::Exits,
            ["home", "sessions", _, "exits.turn"] => Kind::Turn,
            ["home", "locks", "ledger"] => Kind::SessionLedger,
            ["home", "locks", "self-test"] => Kind::SessionTest,
            ["home", "locks", name] if name.starts_with("s-") => Kind::SessionLock,
            ["locks", "ledger"] => Kind::Ledger,
            ["locks", "self-test"] => Kind::Test,
            ["locks", name] if name.ends_with(".gate") => Kind::Gate,
            ["locks", name] if name.starts_with("i-") => Kind::DirectoryLock,
            ["locks", name] if name.starts_with("p-") => Kind::PathLock,
            ["locks", name] if name.starts_with("k-") => Kind::KeyLock,
            _ => panic!(
                "{} is a file that this test does not know: say here what happens to it",
                inside.display()
            ),
        }
    }
}

/// Every file of a home and of its lock folder.
pub(super) fn files(world: &World) -> Vec<(Kind, PathBuf)> {
    let mut found = Vec::new();
    for folder in [&world.home, &world.path("locks")] {
        below(folder, &mut found);
    }
    found.sort();
    found.into_iter().map(|path| (Kind::of(&path, &world.root), path)).collect()
}

fn below(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            below(&entry.path(), into);
        } else {
            into.push(entry.path());
        }
    }
}
