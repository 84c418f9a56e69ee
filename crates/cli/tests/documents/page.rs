//! The pages of this repository, and the blocks in them.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) struct Page {
    /// Relative to the root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of its fence, counted from 1.
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) text: String,
    /// The comments in front of it.
    marks: Vec<String>,
}

impl Block {
    /// What the comment with this word in front of the block says.
    pub(crate) fn mark(&self, word: &str) -> Option<&str> {
        self.marks.iter().find_map(|mark| mark.strip_prefix(word)?.strip_prefix(':')).map(str::trim)
    }

    /// Its command lines, as a script.
    pub(crate) fn script(&self) -> String {
        if self.language != "console" {
            return self.text.clone();
        }
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("$ "));
        lines.map(|line| format!("{line}\n")).collect()
    }

    pub(crate) fn has_commands(&self) -> bool {
        ["sh", "console"].contains(&self.language.as_str())
    }
}

/// All pages, sorted by name.
pub(crate) fn pages() -> Vec<Page> {
    let root = root();
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    found.sort();
    assert!(found.len() > 30, "{found:?} are too few to be all pages");
    let page = |path: PathBuf| Page { text: std::fs::read_to_string(root.join(&path)).unwrap(), path };
    found.into_iter().map(page).collect()
}

/// Folders with generated files, or files that other people wrote.
const NOT_OURS: [&str; 5] = ["target", "node_modules", ".git", "mutants.out", "fixtures"];

fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let name = name.to_string_lossy().into_owned();
        if path.is_dir() {
            if !NOT_OURS.contains(&name.as_str()) {
                collect(root, &path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path.strip_prefix(root).unwrap().to_owned());
        }
    }
}

impl Page {
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut marks, mut open) = (Vec::new(), Vec::new(), None::<Block>);
        for (number, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => block.text.push_str(&format!("{line}\n")),
                (None, Some(language)) => {
                    let (language, marks) = (language.trim().to_owned(), std::mem::take(&mut marks));
                    open = Some(Block { line: number + 1, language, text: String::new(), marks });
                }
                (None, None) => note(line, &mut marks),
            }
        }
        assert_eq!(open, None, "{}: a block has no end", self.name());
        blocks
    }

    /// The text without its blocks.
    pub(crate) fn prose(&self) -> String {
        let mut inside = false;
        let outside = self.text.lines().filter(|line| {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            !fence && !inside
        });
        outside.collect::<Vec<_>>().join("\n")
    }
}

/// Collects comments, which apply to the block that directly follows them.
fn note(line: &str, marks: &mut Vec<String>) {
    let comment = line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
    match comment {
        Some(comment) => marks.push(comment.trim().to_owned()),
        None if line.trim().is_empty() => {}
        None => marks.clear(),
    }
}

#[test]
fn blocks_are_found_with_their_marks() {
    let text = "a\n\n<!-- not run: it takes a year -->\n\n```sh\nsleep 1y\n```\ntext `x`\n```console\n$ echo 1\n1\n```\n";
    let page = Page { path: "x.md".into(), text: text.into() };
    let blocks = page.blocks();
    assert_eq!((blocks.len(), blocks[0].line, blocks[0].mark("not run")), (2, 5, Some("it takes a year")));
    assert_eq!((blocks[1].script().as_str(), blocks[1].mark("not run")), ("echo 1\n", None));
    assert_eq!(page.prose(), "a\n\n<!-- not run: it takes a year -->\n\ntext `x`");
}
