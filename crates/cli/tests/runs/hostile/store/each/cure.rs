//! Follows a hint as it is written.

use super::harm::{Harm, Harmed};
use super::inhabited::{DEADLINE, Inhabited};
use std::path::Path;
use std::time::{Duration, Instant};

/// A file that is back is noticed within this time.
const NOTICED: Duration = crate::processes::PATIENCE;

/// One of the ways out that a hint offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cure {
    /// Put the file back, or correct it.
    PutBack,
    /// Run these commands of ours, in order.
    Commands(Vec<Vec<String>>),
    /// Move this path, or the file itself, aside.
    Aside(String),
}

/// The ways out that a hint offers, in its order. A file that was not moved cannot be put back under a
/// daemon, which has the file itself open.
pub(super) fn ways(hint: &str, harm: Harm, is_up: bool) -> Vec<Cure> {
    let all = hint.split("; ").flat_map(|part| part.split(" or ")).filter_map(way);
    all.filter(|cure| *cure != Cure::PutBack || harm == Harm::Moved || !is_up).collect()
}

fn way(part: &str) -> Option<Cure> {
    if let Some((_, rest)) = part.split_once("move ") {
        let what = rest.split_once(" aside")?.0.trim_matches('`');
        return Some(Cure::Aside(what.to_owned()));
    }
    let quoted = part.split('`').skip(1).step_by(2);
    let commands = quoted.filter_map(|words| words.strip_prefix("pinfold "));
    let commands: Vec<Vec<String>> =
        commands.map(|words| words.split(' ').map(str::to_owned).collect()).collect();
    if !commands.is_empty() {
        return Some(Cure::Commands(commands));
    }
    (part.contains("put ") || part.contains("correct it")).then_some(Cure::PutBack)
}

impl Cure {
    /// Follows it; `older` is a backup from before the harm.
    pub(super) fn follow(&self, home: &Inhabited, harmed: &Harmed, older: &Path) -> Result<(), String> {
        match self {
            Cure::PutBack => {
                harmed.put_back();
                goes_on(home)
            }
            Cure::Aside(what) => {
                let path = if what == "it" { harmed.file() } else { Path::new(what) };
                let aside = home.world.path(&home.fresh("moved"));
                std::fs::rename(path, aside).map_err(|error| format!("{}: {error}", path.display()))
            }
            Cure::Commands(all) => all_of(all, home, older),
        }
    }

    pub(super) fn makes_a_backup(&self) -> bool {
        matches!(self, Cure::Commands(all) if all.iter().any(|words| words[0] == "backup"))
    }
}

/// Waits until the daemon goes on: it looks for a file that it misses.
fn goes_on(home: &Inhabited) -> Result<(), String> {
    let until = Instant::now() + NOTICED;
    loop {
        let answer = home.world.within(DEADLINE, &["send", "chat", "is it back?"]);
        if answer.code == 0 {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("it was put back: {answer:?}"));
        }
    }
}

fn all_of(all: &[Vec<String>], home: &Inhabited, older: &Path) -> Result<(), String> {
    let made = home.world.path(&home.fresh("saved"));
    for words in all {
        let file = if made.exists() || words[0] == "backup" { made.as_path() } else { older };
        let words: Vec<&str> =
            words.iter().map(|word| if word == "FILE" { file.to_str().unwrap() } else { word }).collect();
        let answer = home.world.within(DEADLINE, &words);
        // If no new backup can be made, the older one is used, as the hint says.
        if answer.code != 0 && (words[0] != "backup" || answer.code != 65) {
            return Err(format!("{words:?}, as the hint says: {answer:?}"));
        }
    }
    Ok(())
}
