//! `[agents.NAME]`: a preset of the user's own, or changes to one that pinfold ships.

use super::ConfigError;
use super::policy::{self, Changes};
use super::reading::{Reading, nearest};
use crate::caller::{Act, MAY};
use crate::define::preset::{Input, PLACEHOLDERS, PresetChanges, Protocol, Turns};
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

pub(super) const KEYS: [&str; 8] =
    ["command", "resume", "interactive", "protocol", "input", "turns", "may", "policy"];

/// What the file says of one agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Agent {
    pub(super) preset: PresetChanges,
    pub(super) policy: Changes,
    /// What its runs may do as a person does.
    pub(super) may: Option<Vec<Act>>,
}

impl Agent {
    /// Takes over what an earlier layer says and this one does not.
    pub(super) fn stand_on(&mut self, below: &Agent) {
        self.may = self.may.take().or_else(|| below.may.clone());
        self.preset = below.preset.clone().changed(&self.preset);
        for (key, value) in &below.policy {
            self.policy.entry(key).or_insert(*value);
        }
    }
}

/// Reads one table `[agents.NAME]`.
pub(super) fn read(
    reading: &Reading<'_>,
    value: &DeValue<'_>,
    span: Range<usize>,
) -> Result<Agent, ConfigError> {
    let mut agent = Agent::default();
    let preset = &mut agent.preset;
    for (key, value) in reading.table(value, span)? {
        match key.get_ref().as_ref() {
            "command" => preset.command = Some(words(reading, "command", value)?),
            "resume" => preset.resume = Some(words(reading, "resume", value)?),
            "interactive" => preset.interactive = Some(words(reading, "interactive", value)?),
            "protocol" => preset.protocol = Some(one_of(reading, "protocol", value, &Protocol::WORDS)?),
            "input" => preset.input = Some(one_of(reading, "input", value, &Input::WORDS)?),
            "turns" => preset.turns = Some(one_of(reading, "turns", value, &Turns::WORDS)?),
            "may" => agent.may = Some(may(reading, value)?),
            "policy" => agent.policy = policy::read(reading, value.get_ref(), key.span())?,
            other => return Err(reading.unknown(other, &KEYS, key.span())),
        }
    }
    Ok(agent)
}

/// A program and its arguments.
fn words(reading: &Reading<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, ConfigError> {
    let expected = || {
        reading.error(
            value.span(),
            format!("`{key}` is a list of words, as in [\"prog\", \"--flag\", \"{{dir}}\"]"),
        )
    };
    let list = value.get_ref().as_array().ok_or_else(expected)?;
    let mut words = Vec::new();
    for word in list {
        let text = word.get_ref().as_str().ok_or_else(expected)?;
        if let Some(meant) = mistyped(text) {
            let problem =
                format!("`{key}` has an unknown placeholder in `{text}`; the nearest one is `{meant}`");
            return Err(reading.error(word.span(), problem));
        }
        words.push(text.to_owned());
    }
    if words.first().is_none_or(String::is_empty) {
        return Err(reading.error(value.span(), format!("`{key}` names no program")));
    }
    Ok(words)
}

/// A list of what runs may.
fn may(reading: &Reading<'_>, value: &Spanned<DeValue<'_>>) -> Result<Vec<Act>, ConfigError> {
    let known: Vec<&str> = MAY.iter().map(|(word, _)| *word).collect();
    let expected = format!("`may` is a list of these: {}", known.join(", "));
    let list = value.get_ref().as_array().ok_or_else(|| reading.error(value.span(), &*expected))?;
    let act = |word: &Spanned<DeValue<'_>>| {
        let said = word.get_ref().as_str();
        let found = MAY.iter().find(|(word, _)| Some(*word) == said).map(|(_, act)| *act);
        found.ok_or_else(|| reading.error(word.span(), &*expected))
    };
    list.iter().map(act).collect()
}

/// Braces are for programs to use (`awk '{print}'`): only what is almost one of ours is an error.
fn mistyped(text: &str) -> Option<&'static str> {
    let braced = text.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(word, _)| word));
    braced.map(|word| format!("{{{word}}}")).find_map(|word| {
        let meant = nearest(&word, &PLACEHOLDERS);
        let off = strsim::levenshtein(&word, meant);
        (off > 0 && off * 4 <= meant.len()).then_some(meant)
    })
}

fn one_of<T: Copy>(
    reading: &Reading<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    known: &[(&str, T)],
) -> Result<T, ConfigError> {
    let said = value.get_ref().as_str();
    if let Some((_, found)) = known.iter().find(|(word, _)| Some(*word) == said) {
        return Ok(*found);
    }
    let words: Vec<String> = known.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    Err(reading.error(value.span(), format!("`{key}` is one of {}", words.join(", "))))
}
