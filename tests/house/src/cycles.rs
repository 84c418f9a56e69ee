//! Finds modules that need each other: siblings, at every level of a crate. What a module's children need
//! counts as its own; a parent and its child may know each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::module::Modules;
use crate::sources::Sources;

/// Siblings that all lead to each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// Their parent, as a path.
    pub(crate) below: String,
    pub(crate) modules: Vec<String>,
    /// One line of evidence for each arrow between them.
    arrows: Vec<Arrow>,
}

#[derive(Debug, PartialEq, Eq)]
struct Arrow {
    from: String,
    to: String,
    file: PathBuf,
    line: usize,
    says: String,
}

impl fmt::Display for Cycle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "cycle below {}: {}", self.below, self.modules.join(" "))?;
        for arrow in &self.arrows {
            let (from, to, file) = (&arrow.from, &arrow.to, arrow.file.display());
            writeln!(out, "  {from} -> {to}: {file}:{}: {}", arrow.line, arrow.says)?;
        }
        Ok(())
    }
}

/// For every pair of siblings, the first line by which one needs the other.
type Needs = BTreeMap<usize, BTreeMap<usize, (PathBuf, usize)>>;

/// The cycles of the crate whose root is this file.
pub(crate) fn cycles(root: &Path, sources: &Sources) -> Vec<Cycle> {
    let modules = Modules::read(root, sources);
    let needs = needs(&modules);
    knots(&needs).into_iter().map(|knot| describe(&modules, &needs, &knot, sources)).collect()
}

fn needs(modules: &Modules) -> Needs {
    let mut needs = Needs::new();
    for (here, module) in modules.0.iter().enumerate() {
        for reference in &module.references {
            for target in modules.resolve(here, &reference.path) {
                let Some((from, to)) = siblings(modules, here, target) else {
                    continue;
                };
                let evidence = (module.file.clone(), reference.line);
                needs.entry(from).or_default().entry(to).or_insert(evidence);
            }
        }
    }
    needs
}

/// The two siblings, at some level, of which one contains `from` and the other `to`.
fn siblings(modules: &Modules, from: usize, to: usize) -> Option<(usize, usize)> {
    let (from, to) = (line_of(modules, from), line_of(modules, to));
    from.into_iter().zip(to).find(|(one, other)| one != other)
}

/// The module's ancestors, root first, and the module itself.
fn line_of(modules: &Modules, module: usize) -> Vec<usize> {
    let mut line = vec![module];
    let mut here = module;
    while modules.0[here].parent != here {
        here = modules.0[here].parent;
        line.push(here);
    }
    line.reverse();
    line
}

/// Groups of modules in which each leads to every other one.
fn knots(needs: &Needs) -> Vec<BTreeSet<usize>> {
    let mut knots: Vec<BTreeSet<usize>> = Vec::new();
    for module in needs.keys() {
        if knots.iter().any(|knot| knot.contains(module)) {
            continue;
        }
        let reached = reached_from(needs, *module);
        let back = |other: &usize| reached_from(needs, *other).contains(module);
        let knot: BTreeSet<usize> = reached.into_iter().filter(back).collect();
        if knot.len() > 1 {
            knots.push(knot);
        }
    }
    knots
}

fn reached_from(needs: &Needs, module: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut due = vec![module];
    while let Some(next) = due.pop() {
        let more = needs.get(&next).into_iter().flat_map(BTreeMap::keys);
        due.extend(more.copied().filter(|other| reached.insert(*other)));
    }
    reached
}

fn describe(modules: &Modules, needs: &Needs, knot: &BTreeSet<usize>, sources: &Sources) -> Cycle {
    let name = |module: usize| modules.0[module].name.clone();
    let mut arrows = Vec::new();
    for from in knot {
        let within = needs[from].iter().filter(|(to, _)| knot.contains(to));
        arrows.extend(within.map(|(to, (file, line))| Arrow {
            from: name(*from),
            to: name(*to),
            file: file.clone(),
            line: *line,
            says: line_at(sources, file, *line),
        }));
    }
    let parent = knot.first().map_or(0, |module| modules.0[*module].parent);
    Cycle {
        below: path_of(modules, parent),
        modules: knot.iter().map(|module| name(*module)).collect(),
        arrows,
    }
}

fn path_of(modules: &Modules, module: usize) -> String {
    let mut path = String::new();
    for module in line_of(modules, module) {
        let mark = if path.is_empty() { "" } else { "::" };
        _ = write!(path, "{mark}{}", modules.0[module].name);
    }
    path
}

fn line_at(sources: &Sources, file: &Path, line: usize) -> String {
    let text = sources.get(file).and_then(|text| text.lines().nth(line - 1));
    text.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        let sources: Sources = files.collect();
        let cycles = cycles(Path::new("src/lib.rs"), &sources);
        cycles.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_modules_that_use_each_other_are_found_with_their_lines() {
        let found = found(&[
            ("src/lib.rs", "mod a;\nmod b;\n"),
            ("src/a.rs", "//! A.\nuse crate::b::B;\npub struct A(B);\n"),
            ("src/b.rs", "pub struct B;\nfn b() -> crate::a::A { todo!() }\n"),
        ]);
        let says = "cycle below crate: a b\n  a -> b: src/a.rs:2: use crate::b::B;\n  b -> a: src/b.rs:2: fn b() -> crate::a::A { todo!() }\n";
        assert_eq!(found, [says]);
    }

    #[test]
    fn modules_that_are_used_one_way_are_no_cycle() {
        let found = found(&[
            ("src/lib.rs", "mod a;\nmod b;\npub use a::A;\n"),
            ("src/a.rs", "use crate::b::B;\npub struct A(B);\n"),
            ("src/b.rs", "pub struct B;\n"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_cycle_of_three_is_one_cycle() {
        let found = found(&[
            ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
            ("src/a.rs", "use super::b;"),
            ("src/b.rs", "use super::{c::C, d};"),
            ("src/c.rs", "use crate::a::{self, A};"),
            ("src/d.rs", ""),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("cycle below crate: a b c\n"), "{found:?}");
    }

    #[test]
    fn a_cycle_of_siblings_deep_below_is_found() {
        let found = found(&[
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod b; mod c;"),
            ("src/a/b.rs", "fn b() { super::c::c() }"),
            ("src/a/c.rs", "fn c() { crate::a::b::b() }"),
        ]);
        assert!(found[0].starts_with("cycle below crate::a: b c\n"), "{found:?}");
    }

    #[test]
    fn what_a_child_needs_its_parent_needs() {
        let found = found(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "mod deep;"),
            ("src/a/deep.rs", "use crate::b;"),
            ("src/b.rs", "use crate::a::thing;"),
        ]);
        assert!(found[0].starts_with("cycle below crate: a b\n"), "{found:?}");
    }

    #[test]
    fn a_name_that_the_root_exports_is_from_where_it_is_defined() {
        let found = found(&[
            ("src/lib.rs", "mod a; mod b; pub use a::{A, other as Renamed}; pub use b::*;"),
            ("src/a.rs", "use crate::B; pub struct A;"),
            ("src/b.rs", "use crate::Renamed; pub struct B;"),
        ]);
        assert!(found[0].starts_with("cycle below crate: a b\n"), "{found:?}");
    }

    #[test]
    fn tests_may_use_anything() {
        let found = found(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_parent_and_its_child_may_know_each_other() {
        let found = found(&[
            ("src/lib.rs", "mod a; use a::A; pub struct Root(A);"),
            ("src/a.rs", "use crate::Root; mod inside { use super::A; }"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn modules_within_one_file_count() {
        let found = found(&[(
            "src/lib.rs",
            "mod a { use super::b::B; pub struct A; } mod b { use super::a::A; pub struct B; }",
        )]);
        assert!(found[0].starts_with("cycle below crate: a b\n"), "{found:?}");
    }
}
