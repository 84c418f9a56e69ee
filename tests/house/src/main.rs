//! Checks the house rules that the compiler does not see: sibling modules never need each other in a circle,
//! files and functions stay small, and a type's name means one thing. `./test style` runs it from the root of the workspace.

mod cycles;
mod doubles;
mod lex;
mod module;
mod resolve;
mod sizes;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cycles::Cycle;
use sources::Sources;

/// The crates that still have cycles, one per line.
const KNOWN: &str = "tests/house/known-cycles";

fn main() -> ExitCode {
    match check(Path::new(".")) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Checks the workspace, prints what breaks the rules, and returns whether nothing does.
fn check(root: &Path) -> io::Result<bool> {
    let sources = sources::read(root)?;
    let known = known(&fs::read_to_string(root.join(KNOWN))?);
    let found = cycles_by_crate(&sources);
    let mut wrong = judge(&found, &known);
    wrong.extend(sizes::too_large(&sources));
    wrong.extend(doubles::judge(&sources, &fs::read_to_string(root.join(doubles::LIST))?));
    let mut out = io::stdout().lock();
    for line in &wrong {
        writeln!(out, "{}", line.trim_end())?;
    }
    if wrong.is_empty() {
        let except = if known.is_empty() { "" } else { " but for the crates in tests/house/known-cycles" };
        let (file, function) = (sizes::FILE, sizes::FUNCTION);
        writeln!(
            out,
            "no cycle among modules{except}; no file over {file} lines, no function over {function}; no type name with two meanings"
        )?;
    }
    Ok(wrong.is_empty())
}

/// The crates named in the list of exceptions; `#` begins a comment.
fn known(list: &str) -> BTreeSet<String> {
    let words = list.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The cycles of each crate. A crate is a folder with `src` in it; each of its targets has its own modules.
fn cycles_by_crate(sources: &Sources) -> BTreeMap<String, Vec<Cycle>> {
    let mut found: BTreeMap<String, Vec<Cycle>> = BTreeMap::new();
    for (folder, root) in sources.keys().filter_map(|path| Some((root_of(path)?, path))) {
        let cycles = cycles::cycles(root, sources);
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        found.entry(name.unwrap_or_default()).or_default().extend(cycles);
    }
    found
}

/// The folder of the crate, if this file is the root of one of its targets.
fn root_of(path: &Path) -> Option<PathBuf> {
    let (name, folder) = (path.file_name()?, path.parent()?);
    if folder.ends_with("src") && (name == "lib.rs" || name == "main.rs") {
        return Some(folder.parent()?.to_owned());
    }
    folder.ends_with("src/bin").then(|| folder.parent()?.parent().map(Path::to_owned))?
}

/// What is wrong: a cycle in a crate that is not excused, or an excuse that is not needed.
fn judge(found: &BTreeMap<String, Vec<Cycle>>, known: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, cycles) in found.iter().filter(|(name, _)| !known.contains(*name)) {
        wrong.extend(cycles.iter().map(|cycle| format!("{name}: {cycle}")));
    }
    for name in known {
        if found.get(name).is_none_or(Vec::is_empty) {
            wrong.push(format!("{KNOWN}: {name} has no cycle: take it off the list"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(known_cycles: &str, files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        judge(&cycles_by_crate(&files.collect()), &known(known_cycles))
    }

    const TIED: &str = "mod a { use crate::b::B; } mod b { use crate::a::A; }";

    #[test]
    fn a_planted_cycle_is_told_with_its_crate() {
        let wrong = wrong("", &[("crates/one/src/lib.rs", "mod a;"), ("crates/two/src/main.rs", TIED)]);
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].starts_with("two: cycle below crate: a b\n"), "{wrong:?}");
    }

    #[test]
    fn a_crate_on_the_list_may_have_cycles() {
        assert_eq!(wrong("# why\none\n", &[("crates/one/src/lib.rs", TIED)]), Vec::<String>::new());
    }

    #[test]
    fn an_exception_that_nothing_needs_is_told() {
        let wrong = wrong("one\ntwo\n", &[("crates/one/src/lib.rs", "mod a {}")]);
        let says = |name| format!("tests/house/known-cycles: {name} has no cycle: take it off the list");
        assert_eq!(wrong, [says("one"), says("two")]);
    }

    #[test]
    fn every_target_of_a_crate_is_looked_at() {
        let wrong = wrong("", &[("bench/src/main.rs", ""), ("bench/src/bin/child.rs", TIED)]);
        assert_eq!(wrong.len(), 1);
    }
}
