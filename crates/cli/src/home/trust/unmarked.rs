//! Recognises homes without a marker, made by earlier versions, by their contents.

use super::known::LIST;
use super::marker::has;
use pinfold_api::place;
use pinfold_lock::Folder;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The first bytes of an SQLite file, and the offset of its application id.
const SQLITE: &[u8] = b"SQLite format 3\0";
const OWNER_AT: usize = 68;
const OWNER: u32 = 0x5069_6E46;

/// All names that a version without markers made in a home; other files begin with one of these and a dot or
/// a hyphen.
const OURS: [&str; 15] = [
    "pinfold.db",
    "pinfold.sock",
    "daemon.lock",
    "daemon.log",
    "daemon.place",
    "sessions",
    "shims",
    "agents",
    "locks",
    "runs",
    ".pinfold-runs",
    "audit.jsonl",
    "witness",
    "reserve",
    "config.toml",
];

/// A file that shows that a directory is not a home; `None` if everything in it says that it is one.
pub(super) fn stranger(dir: BorrowedFd<'_>, names: &[OsString], usual: bool) -> Option<OsString> {
    if is_database(dir) {
        return None;
    }
    if let Some(name) = names.iter().find(|name| !is_ours(name, usual)) {
        return Some(name.clone());
    }
    let proven = usual || is_small_file(dir, "daemon.lock") || has(dir, "locks/ledger");
    if proven { None } else { names.first().cloned() }
}

fn is_ours(name: &OsString, usual: bool) -> bool {
    let Some(name) = name.to_str() else { return false };
    let of = |ours: &str| {
        name.strip_prefix(ours).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    };
    OURS.into_iter().any(of) || (usual && name == LIST)
}

/// Whether the directory has a database of ours, by its first bytes.
fn is_database(dir: BorrowedFd<'_>) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(dir, "pinfold.db", flags, Mode::empty()) else { return false };
    let mut head = [0; OWNER_AT + 4];
    let whole = File::from(file).read_exact(&mut head).is_ok();
    whole && head.starts_with(SQLITE) && head[OWNER_AT..] == OWNER.to_be_bytes()
}

/// Whether a lock file is small enough: earlier versions left it empty, later ones write a line into it.
fn is_small_file(dir: BorrowedFd<'_>, name: &str) -> bool {
    let facts = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    facts.is_ok_and(|facts| {
        FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile && facts.st_size < 1024
    })
}

/// Whether this machine knows a home: its locks were used since the machine started, a daemon of ours has it
/// now, or its database mentions a daemon of this boot. None of these can come along from elsewhere.
pub(super) fn was_used_here(home: &Path) -> bool {
    Folder::was_used_in_this_boot(home.join("locks"))
        || has_daemon_of_ours(home)
        || ["pinfold.db", "pinfold.db-wal"].iter().any(|file| mentions_boot(&home.join(file)))
}

/// Whether a file contains the id of this boot. It is not opened as a database: it may be anyone's.
fn mentions_boot(file: &Path) -> bool {
    let boot = pinfold_kernel::own::boot_id().unwrap_or_default();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(file, flags, Mode::empty()) {
        Ok(file) if !boot.is_empty() => has_text(File::from(file), boot.as_bytes()),
        Ok(_) | Err(_) => false,
    }
}

fn has_text(mut from: impl Read, text: &[u8]) -> bool {
    let mut seen = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        match from.read(&mut part) {
            Ok(0) | Err(_) => return false,
            Ok(count) => seen.extend_from_slice(&part[..count]),
        }
        if seen.windows(text.len()).any(|window| window == text) {
            return true;
        }
        // The id may begin at the end of this part.
        seen.drain(..seen.len().saturating_sub(text.len()));
    }
}

fn has_daemon_of_ours(home: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let of_user = |pid: u32| std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == own);
    place::is_held(home) && place::holder(home).is_some_and(of_user)
}

/// Whether a home's configuration names programs and lies in a directory that may have been cloned.
pub(super) fn is_cloned(home: &Path) -> bool {
    let tracked =
        |folder: &Path| [".git", ".hg", ".jj", ".svn"].iter().any(|name| has_something(&folder.join(name)));
    home.ancestors().any(tracked) && names_programs(&home.join("config.toml"))
}

/// Whether it is a file or a folder that is not empty: agents' sandboxes leave an empty `.git` in `/tmp` and
/// elsewhere.
fn has_something(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

fn names_programs(config: &Path) -> bool {
    let text = std::fs::read(config).unwrap_or_default();
    String::from_utf8_lossy(&text).contains("command")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_of_a_sandbox_is_not_a_clone() {
        let folder = tempfile::tempdir().unwrap();
        let [git, home] = [".git", "home"].map(|name| folder.path().join(name));
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("config.toml"), "command").unwrap();
        std::fs::create_dir(&git).unwrap();
        assert!(!has_something(&git));
        std::fs::write(git.join("HEAD"), "ref").unwrap();
        assert!(has_something(&git) && is_cloned(&home));
    }

    #[test]
    fn a_text_is_found_wherever_parts_of_it_are_read() {
        for at in [0, 65_530, 65_536, 200_000] {
            let mut bytes = vec![b'x'; 300_000];
            bytes[at..at + 4].copy_from_slice(b"boot");
            assert!(has_text(&bytes[..], b"boot"), "{at}");
        }
        assert!(!has_text(&b"boo"[..], b"boot") && !has_text(&b"xxxxxboo"[..], b"boot"));
    }

    #[test]
    fn only_names_that_we_gave_are_ours() {
        for (name, ours) in
            [("pinfold.db", true), ("pinfold.db-wal", true), ("pinfold.dbx", false), ("src", false)]
        {
            assert_eq!(is_ours(&name.into(), false), ours, "{name}");
        }
        assert!(is_ours(&"homes".into(), true) && !is_ours(&"homes".into(), false));
    }
}
