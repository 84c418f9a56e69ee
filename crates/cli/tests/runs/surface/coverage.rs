//! No verb is without snapshots.

use super::stage::{Stage, snapshots};
use crate::world::verbs_in;
use std::collections::BTreeSet;
use std::path::Path;

/// Every verb, as listed by the definition of the command line.
pub(super) fn verbs(stage: &Stage) -> Vec<String> {
    verbs_in(&stage.ok(&["--help"]).stdout)
}

/// A verb that cannot succeed yet: no known agent's protocol asks for permission.
const NEVER_WORKS: [&str; 1] = ["answer"];

/// One command line of a snapshot, and how it ended.
struct Ran {
    words: Vec<String>,
    code: i32,
}

impl Ran {
    fn is_of(&self, verb: &str) -> bool {
        self.words.iter().find(|word| !word.starts_with('-')).is_some_and(|word| word == verb)
    }

    fn has(&self, option: &str) -> bool {
        self.words.iter().take_while(|word| *word != "--").any(|word| word == option)
    }
}

fn ran_in(file: &Path) -> Vec<Ran> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| {
        let words = pair[0].strip_prefix("$ pinfold ")?.split(' ').map(str::to_owned).collect();
        Some(Ran { words, code: pair[1].strip_prefix("exit ")?.parse().ok()? })
    });
    pairs.collect()
}

fn all() -> Vec<Ran> {
    let groups = std::fs::read_dir(snapshots()).unwrap().flatten().filter(|group| group.path().is_dir());
    let files = groups.flat_map(|group| std::fs::read_dir(group.path()).unwrap().flatten());
    let files =
        files.map(|file| file.path()).filter(|file| file.extension().is_some_and(|end| end == "snap"));
    files.flat_map(|file| ran_in(&file)).collect()
}

#[test]
fn every_verb_has_snapshots_of_its_help_its_work_its_json_and_an_error() {
    let stage = Stage::new("coverage");
    let all = all();
    let mut missing = BTreeSet::new();
    for verb in verbs(&stage) {
        let of: Vec<&Ran> = all.iter().filter(|ran| ran.is_of(&verb)).collect();
        let help = |ran: &Ran| ran.has("--help") || ran.has("-h");
        let works = |ran: &Ran| ran.code == 0 && !help(ran) || NEVER_WORKS.contains(&verb.as_str());
        let kinds: [(&str, bool); 5] = [
            ("help", of.iter().any(|ran| ran.has("--help"))),
            ("work", of.iter().any(|ran| works(ran))),
            ("work in JSON", of.iter().any(|ran| works(ran) && ran.has("--json"))),
            ("an error", of.iter().any(|ran| ran.code != 0)),
            ("an error in JSON", of.iter().any(|ran| ran.code != 0 && ran.has("--json"))),
        ];
        missing.extend(kinds.iter().filter(|(_, there)| !there).map(|(kind, _)| format!("{verb}: {kind}")));
    }
    assert!(missing.is_empty(), "without a snapshot: {missing:#?}");
}
