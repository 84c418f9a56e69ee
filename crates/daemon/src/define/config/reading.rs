//! The text of a file while it is read: where a thing stands, and what its writer may have meant.

use super::ConfigError;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

pub(super) struct Reading<'a> {
    pub(super) text: &'a str,
    /// The keys of `[policy]`.
    pub(super) numbers: &'a [&'static str],
}

impl Reading<'_> {
    pub(super) fn error(&self, span: Range<usize>, problem: impl Into<String>) -> ConfigError {
        ConfigError { line: line_of(self.text, span.start), problem: problem.into() }
    }

    /// A key that is not known here. A number of `[policy]` that stands outside of one is told its place.
    pub(super) fn unknown(&self, key: &str, known: &[&str], span: Range<usize>) -> ConfigError {
        let nearest = if known.contains(&"policy") && self.numbers.contains(&key) {
            format!("policy.{key}")
        } else {
            nearest(key, known).to_owned()
        };
        self.error(span, format!("there is no key `{key}`; the nearest one is `{nearest}`"))
    }

    pub(super) fn table<'t, 'i>(
        &self,
        value: &'t DeValue<'i>,
        span: Range<usize>,
    ) -> Result<&'t DeTable<'i>, ConfigError> {
        value.as_table().ok_or_else(|| self.error(span, "a table is expected here"))
    }
}

/// The known word that takes the fewest changes.
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
