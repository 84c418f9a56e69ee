//! One type name, one idea: a name that two public types share is on a list, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::lex::tokens;
use crate::sources::{Sources, without_tests};

/// The names that are shared, each with its reason.
pub(crate) const LIST: &str = "tests/house/known-doubles";

/// What is wrong: a shared name without a reason, or a reason without a shared name.
pub(crate) fn judge(sources: &Sources, list: &str) -> Vec<String> {
    let (shared, mut wrong) = (shared(sources), Vec::new());
    let listed = listed(list, &mut wrong);
    for (name, paths) in shared.iter().filter(|(name, _)| !listed.contains(name.as_str())) {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        wrong.push(format!(
            "{name} names a type in {}: rename all but one, or say why in {LIST}",
            paths.join(", ")
        ));
    }
    for name in listed.iter().filter(|name| !shared.contains_key(**name)) {
        wrong.push(format!("{LIST}: {name} names one type only: take it off the list"));
    }
    wrong
}

/// The names on the list. A line has names, a colon, and a reason; `#` begins a comment.
fn listed<'a>(list: &'a str, wrong: &mut Vec<String>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for line in list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once(':').filter(|(_, reason)| !reason.trim().is_empty()) {
            Some((all, _)) => names.extend(all.split_whitespace()),
            None => wrong.push(format!("{LIST}: no reason is given: {line}")),
        }
    }
    names
}

/// The names that more than one public type of the product has, and where.
fn shared(sources: &Sources) -> BTreeMap<String, Vec<&Path>> {
    let mut found: BTreeMap<String, Vec<&Path>> = BTreeMap::new();
    for (path, text) in sources.iter().filter(|(path, _)| is_product(path)) {
        for name in types(text) {
            found.entry(name).or_default().push(path);
        }
    }
    found.retain(|_, paths| paths.len() > 1);
    found
}

/// Whether a file is a part of what users get: not a test, nor the engine's simulated world.
fn is_product(path: &Path) -> bool {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    let is_source = parts.next() == Some("crates") && parts.nth(1) == Some("src");
    is_source && !parts.any(|part| matches!(part, "tests" | "tests.rs" | "simulation" | "simulation.rs"))
}

/// The public structs, enums, unions and traits of a file. Private ones are their own file's business.
fn types(text: &str) -> Vec<String> {
    let tokens = without_tests(&tokens(text));
    let mut found = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "pub") {
        let mut rest = tokens[at + 1..].iter().map(|token| token.text.as_str()).peekable();
        if rest.peek() == Some(&"(") {
            _ = rest.by_ref().find(|word| *word == ")");
        }
        let kind = rest.find(|word| *word != "unsafe");
        if let (Some("struct" | "enum" | "union" | "trait"), Some(name)) = (kind, rest.next())
            // In a macro the name is a variable.
            && name != "$"
        {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(list: &str, files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| ((*path).into(), (*text).to_owned()));
        judge(&files.collect(), list)
    }

    const ONE: (&str, &str) =
        ("crates/one/src/a.rs", "pub struct Place; struct Own; #[cfg(test)] mod t { pub struct T; }");
    const TWO: (&str, &str) =
        ("crates/two/src/b.rs", "pub(in crate::b) enum Place { A } pub struct Own; pub struct T;");

    #[test]
    fn a_name_that_two_public_types_share_is_told_unless_there_is_a_reason() {
        let told = "Place names a type in crates/one/src/a.rs, crates/two/src/b.rs: \
                    rename all but one, or say why in tests/house/known-doubles";
        assert_eq!(wrong("", &[ONE, TWO]), [told]);
        assert_eq!(wrong("# why\nPlace: the JSON of the other\n", &[ONE, TWO]), Vec::<String>::new());
    }

    #[test]
    fn a_reason_is_given_and_needed() {
        assert_eq!(wrong("Place:\n", &[ONE]), ["tests/house/known-doubles: no reason is given: Place:"]);
        let told = "tests/house/known-doubles: Place names one type only: take it off the list";
        assert_eq!(wrong("Place: two layers\n", &[ONE]), [told]);
    }

    #[test]
    fn tests_may_name_their_types_as_they_like() {
        for path in ["crates/two/src/tests/b.rs", "crates/two/tests/b.rs", "bench/src/b.rs"] {
            assert_eq!(wrong("", &[ONE, (path, TWO.1)]), Vec::<String>::new(), "{path}");
        }
    }
}
