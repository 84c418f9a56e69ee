//! Guesses what the writer of a file meant.

use super::ConfigError;

/// The known word that takes the fewest edits.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> &'a str {
    known.iter().min_by_key(|name| strsim::levenshtein(word, name)).copied().unwrap_or_default()
}

pub(super) fn broken(text: &str, error: &toml::de::Error) -> ConfigError {
    let line = error.span().map_or(1, |span| line_of(text, span.start));
    ConfigError { line, problem: error.message().trim().to_owned() }
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}
