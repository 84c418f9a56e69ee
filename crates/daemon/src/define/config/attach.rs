//! `[attach]`: what the program of a session may do to the terminal of whoever attaches to it.

use super::ConfigError;
use super::reading::{Reading, nearest};
use pinfold_terminal::Allow;
use std::ops::Range;
use toml::de::DeValue;

const KEYS: [&str; 1] = ["allow"];

/// Reads the table.
pub(super) fn read(
    reading: &Reading<'_>,
    value: &DeValue<'_>,
    span: Range<usize>,
) -> Result<Allow, ConfigError> {
    let mut allow = Allow::default();
    for (key, value) in reading.table(value, span)? {
        match key.get_ref().as_ref() {
            "allow" => allow = words(reading, value.get_ref(), value.span())?,
            other => return Err(reading.unknown(other, &KEYS, key.span())),
        }
    }
    Ok(allow)
}

/// All that is allowed: a list takes the place of the usual one.
fn words(reading: &Reading<'_>, value: &DeValue<'_>, span: Range<usize>) -> Result<Allow, ConfigError> {
    let wrong = "`allow` is a list of words in quotes, as in [\"title\", \"links\", \"clipboard\"]";
    let list = value.as_array().ok_or_else(|| reading.error(span, wrong))?;
    let mut allow = Allow::NOTHING;
    for word in list {
        let text = word.get_ref().as_str().ok_or_else(|| reading.error(word.span(), wrong))?;
        if !allow.allow(text) {
            let meant = nearest(text, &Allow::WORDS);
            let problem = format!("nothing is called `{text}` here; the nearest word is `{meant}`");
            return Err(reading.error(word.span(), problem));
        }
    }
    Ok(allow)
}
