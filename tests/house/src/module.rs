//! The modules of one crate: their files, their children, what they define, import, and refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::lex::{Token, tokens};
use crate::sources::{Sources, says, without_tests};

/// All modules of a crate; the first is its root.
#[derive(Debug, Default)]
pub(crate) struct Modules(pub(crate) Vec<Module>);

/// One module, whether it has a file of its own or not.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) name: String,
    /// Its parent's index; the root is its own parent.
    pub(crate) parent: usize,
    pub(crate) children: BTreeMap<String, usize>,
    pub(crate) file: PathBuf,
    pub(crate) items: BTreeSet<String>,
    pub(crate) imports: BTreeMap<String, Vec<String>>,
    /// Modules from which it imports everything.
    pub(crate) globs: Vec<Vec<String>>,
    pub(crate) references: Vec<Reference>,
}

/// A path used in a module.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// Keywords followed by the name of what they define.
const DEFINING: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];

impl Modules {
    /// Reads the crate whose root is this file, and every file that its `mod` lines lead to.
    pub(crate) fn read(root: &Path, sources: &Sources) -> Self {
        let mut modules = Self::default();
        let folder = root.parent().unwrap_or(Path::new(""));
        modules.read_file("crate", 0, root.to_owned(), folder, sources);
        modules
    }

    fn read_file(&mut self, name: &str, parent: usize, file: PathBuf, folder: &Path, sources: &Sources) {
        let text = sources.get(&file).map_or("", String::as_str);
        let here = self.add(name, parent, file);
        self.read_body(here, &without_tests(&tokens(text)), folder, sources);
    }

    fn add(&mut self, name: &str, parent: usize, file: PathBuf) -> usize {
        let here = self.0.len();
        self.0.push(Module { name: name.to_owned(), parent, file, ..Module::default() });
        if here != parent {
            self.0[parent].children.insert(name.to_owned(), here);
        }
        here
    }

    /// Reads the tokens of one module. `folder` is where its children's files are.
    fn read_body(&mut self, here: usize, body: &[Token], folder: &Path, sources: &Sources) {
        let mut at = 0;
        while at < body.len() {
            let rest = &body[at..];
            let follows_path = at > 0 && body[at - 1].text == "::";
            at += match rest[0].text.as_str() {
                "mod" if rest.len() > 2 => self.read_child(here, rest, folder, sources),
                "use" if !says(&rest[1..], &["<"]) => self.read_use(here, rest),
                "crate" | "self" | "super" if !follows_path => self.read_path(here, rest),
                word if DEFINING.contains(&word) => self.read_item(here, rest),
                _ => 1,
            };
        }
    }

    fn read_child(&mut self, here: usize, rest: &[Token], folder: &Path, sources: &Sources) -> usize {
        let name = &rest[1].text;
        let below = folder.join(name);
        if rest[2].text == "{" {
            let length = closing(&rest[2..]);
            let child = self.add(name, here, self.0[here].file.clone());
            self.read_body(child, &rest[3..2 + length], &below, sources);
            return 2 + length;
        }
        if rest[2].text == ";" {
            let flat = folder.join(format!("{name}.rs"));
            let file = if sources.contains_key(&flat) { flat } else { below.join("mod.rs") };
            self.read_file(name, here, file, &below, sources);
        }
        2
    }

    fn read_use(&mut self, here: usize, rest: &[Token]) -> usize {
        let length = rest.iter().position(|token| token.text == ";").unwrap_or(rest.len());
        self.import(here, &[], &rest[1..length]);
        length
    }

    /// Reads one tree of a `use`: a path, with braces or not.
    fn import(&mut self, here: usize, before: &[String], tree: &[Token]) {
        let mut path = before.to_vec();
        for (at, token) in tree.iter().enumerate() {
            match token.text.as_str() {
                "::" => {}
                "{" => {
                    let inside = &tree[at + 1..at + closing(&tree[at..])];
                    for part in parts(inside) {
                        self.import(here, &path, part);
                    }
                    return;
                }
                "as" => break,
                word => path.push(word.to_owned()),
            }
        }
        self.imported(here, path, tree);
    }

    fn imported(&mut self, here: usize, mut path: Vec<String>, tree: &[Token]) {
        let Some(last) = tree.last() else { return };
        if last.text == "self" && path.len() > 1 {
            path.pop();
        }
        let module = &mut self.0[here];
        if last.text == "*" {
            path.pop();
            module.globs.push(path.clone());
        } else {
            let renamed = tree.len() > 1 && tree[tree.len() - 2].text == "as";
            let name = if renamed { Some(&last.text) } else { path.last() };
            module.imports.extend(name.map(|name| (name.clone(), path.clone())));
        }
        module.references.push(Reference { path, line: last.line });
    }

    /// Reads a path in code: `crate::a::b`, `super::c`.
    fn read_path(&mut self, here: usize, rest: &[Token]) -> usize {
        let mut path = vec![rest[0].text.clone()];
        let mut at = 1;
        while at + 1 < rest.len() && rest[at].text == "::" && starts_word(&rest[at + 1].text) {
            path.push(rest[at + 1].text.clone());
            at += 2;
        }
        if path.len() > 1 {
            let line = rest[0].line;
            self.0[here].references.push(Reference { path, line });
        }
        at
    }

    fn read_item(&mut self, here: usize, rest: &[Token]) -> usize {
        if let Some(name) = rest.get(1).filter(|name| starts_word(&name.text)) {
            self.0[here].items.insert(name.text.clone());
        }
        1
    }
}

fn starts_word(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// The distance from an opening brace to its closing one.
pub(crate) fn closing(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The trees between the commas of a `use`.
fn parts(inside: &[Token]) -> Vec<&[Token]> {
    let (mut found, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, token) in inside.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                found.push(&inside[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&inside[begin..]);
    found.retain(|part| !part.is_empty());
    found
}
