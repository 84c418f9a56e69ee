//! The Rust files of the workspace, read once; and which items in them are not part of the product: those
//! under `#[cfg(test)]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::lex::Token;

/// Every Rust file by its path from the root of the workspace.
pub(crate) type Sources = BTreeMap<PathBuf, String>;

/// Reads all Rust files below the root except for build output and hidden folders.
pub(crate) fn read(root: &Path) -> io::Result<Sources> {
    let mut sources = Sources::new();
    read_folder(root, Path::new(""), &mut sources)?;
    Ok(sources)
}

fn read_folder(root: &Path, folder: &Path, sources: &mut Sources) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = folder.join(&name);
        let built = name == "target" || name.as_encoded_bytes().starts_with(b".");
        if entry.file_type()?.is_dir() && !built {
            read_folder(root, &path, sources)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            sources.insert(path, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

/// The tokens without the items that are compiled only for tests.
pub(crate) fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if says(&tokens[at..], &["#", "[", "cfg", "(", "test", ")", "]"]) {
            at = end_of_item(tokens, at);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Whether the tokens begin with these words.
pub(crate) fn says(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, word)| token.text == *word)
}

/// The index after the item that begins here with its attributes, past its semicolon or closing brace.
fn end_of_item(tokens: &[Token], begin: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(token.text.as_str(), ";" | "}") {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lex::tokens;

    #[test]
    fn what_is_compiled_for_tests_only_is_left_out() {
        let source = "a #[cfg(test)] #[must_use] mod tests { use b; } c #[cfg(test)] mod d; e #[cfg(unix)] f";
        let kept = without_tests(&tokens(source));
        let words: Vec<_> = kept.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(words, ["a", "c", "e", "#", "[", "cfg", "(", "unix", ")", "]", "f"]);
    }
}
