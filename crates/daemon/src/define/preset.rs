//! Presets: what an agent's name stands for. Data only; `config.toml` makes them, whoever starts runs uses them.
//!
//! [`Config::preset`](crate::define::config::Config::preset) has the preset of a name; [`Preset::headless`] and
//! [`Preset::interactive`] make the words to execute, with `{dir}` and `{vendor_session}` filled in.

use serde::{Deserialize, Serialize};

/// The agent that runs any program.
pub(crate) const COMMAND: &str = "command";

/// What may stand in the words of a preset.
pub const PLACEHOLDERS: [&str; 2] = ["{dir}", "{vendor_session}"];

/// What an agent's name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// Starts it without a terminal.
    pub command: Vec<String>,
    /// Starts it without a terminal on a vendor session that exists; `command` where there is none.
    pub resume: Option<Vec<String>>,
    /// Starts the vendor's own terminal program.
    pub interactive: Option<Vec<String>>,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// How a message is written, for protocol `line`.
    pub input: Input,
    /// When a turn is over, for protocol `line`.
    pub turns: Turns,
}

/// What one layer of the configuration says of a preset; the rest is as it was below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PresetChanges {
    /// See [`Preset::command`].
    pub command: Option<Vec<String>>,
    /// See [`Preset::resume`].
    pub resume: Option<Vec<String>>,
    /// See [`Preset::interactive`].
    pub interactive: Option<Vec<String>>,
    /// See [`Preset::protocol`].
    pub protocol: Option<Protocol>,
    /// See [`Preset::input`].
    pub input: Option<Input>,
    /// See [`Preset::turns`].
    pub turns: Option<Turns>,
}

/// How an agent is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Lines on stdin and stdout.
    #[default]
    Line,
    /// Claude Code's JSON lines.
    StreamJson,
    /// Codex's app server.
    Codex,
    /// The agent client protocol.
    Acp,
}

/// How a message is written to an agent that reads lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Its text, with newline and backslash escaped.
    #[default]
    Line,
    /// `{"id","text","try"}`.
    Json,
}

/// When a turn of an agent that reads lines is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// When its stdin took the line.
    #[default]
    Line,
    /// When it prints `PINFOLD_DONE`.
    Done,
}

impl Protocol {
    /// The words of `config.toml`.
    pub const WORDS: [(&'static str, Protocol); 4] = [
        ("line", Protocol::Line),
        ("stream-json", Protocol::StreamJson),
        ("codex", Protocol::Codex),
        ("acp", Protocol::Acp),
    ];
}

impl Input {
    /// The words of `config.toml` and of `--input`.
    pub const WORDS: [(&'static str, Input); 2] = [("line", Input::Line), ("json", Input::Json)];
}

impl Turns {
    /// The words of `config.toml` and of `--turns`.
    pub const WORDS: [(&'static str, Turns); 2] = [("line", Turns::Line), ("done", Turns::Done)];
}

/// What a word of one of these tables stands for.
pub(crate) fn of_word<T: Copy>(words: &[(&str, T)], said: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == said).map(|(_, known)| *known)
}

/// What is filled into the words of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling<'a> {
    /// `{dir}`: where the session runs.
    pub dir: &'a str,
    /// `{vendor_session}`: the agent's own session, once it is known.
    pub vendor_session: Option<&'a str>,
}

/// The words name a vendor session, and none is known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its command needs a vendor session, and none is known yet; `--vendor-session ID` names one")]
pub struct NoVendorSession;

impl PresetChanges {
    /// These with others on top.
    #[must_use]
    pub fn changed(self, above: &PresetChanges) -> PresetChanges {
        PresetChanges {
            command: above.command.clone().or(self.command),
            resume: above.resume.clone().or(self.resume),
            interactive: above.interactive.clone().or(self.interactive),
            protocol: above.protocol.or(self.protocol),
            input: above.input.or(self.input),
            turns: above.turns.or(self.turns),
        }
    }

    /// The preset; nothing when no layer says how to start it.
    #[must_use]
    pub fn preset(&self) -> Option<Preset> {
        Some(Preset {
            command: self.command.clone()?,
            resume: self.resume.clone(),
            interactive: self.interactive.clone(),
            protocol: self.protocol.unwrap_or_default(),
            input: self.input.unwrap_or_default(),
            turns: self.turns.unwrap_or_default(),
        })
    }
}

impl Preset {
    /// The words that start it without a terminal: `resume` on a known vendor session, else `command`.
    ///
    /// # Errors
    /// The words name a vendor session, and none is known.
    pub fn headless(&self, filling: Filling<'_>) -> Result<Vec<String>, NoVendorSession> {
        let words = self.resume.as_ref().filter(|_| filling.vendor_session.is_some());
        fill(words.unwrap_or(&self.command), filling)
    }

    /// The words that start the vendor's own terminal program, where the preset has one.
    ///
    /// # Errors
    /// The words name a vendor session, and none is known.
    pub fn interactive(&self, filling: Filling<'_>) -> Option<Result<Vec<String>, NoVendorSession>> {
        self.interactive.as_ref().map(|words| fill(words, filling))
    }
}

fn fill(words: &[String], filling: Filling<'_>) -> Result<Vec<String>, NoVendorSession> {
    words.iter().map(|word| fill_word(word, filling)).collect()
}

/// Fills each place once, from left to right: what is filled in is never looked at again.
fn fill_word(word: &str, filling: Filling<'_>) -> Result<String, NoVendorSession> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((at, place)) =
        PLACEHOLDERS.iter().filter_map(|place| Some((rest.find(place)?, *place))).min()
    {
        filled.push_str(&rest[..at]);
        filled.push_str(match place {
            "{dir}" => filling.dir,
            _ => filling.vendor_session.ok_or(NoVendorSession)?,
        });
        rest = &rest[at + place.len()..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn preset() -> Preset {
        PresetChanges {
            command: Some(words("prog --dir={dir}")),
            resume: Some(words("prog --resume {vendor_session}")),
            ..PresetChanges::default()
        }
        .preset()
        .unwrap()
    }

    #[test]
    fn a_known_vendor_session_is_resumed_and_an_unknown_one_begun() {
        let fresh = Filling { dir: "/a b", vendor_session: None };
        assert_eq!(preset().headless(fresh).unwrap(), ["prog", "--dir=/a b"]);
        let known = Filling { vendor_session: Some("id-1"), ..fresh };
        assert_eq!(preset().headless(known).unwrap(), ["prog", "--resume", "id-1"]);
        let plain = Preset { resume: None, ..preset() };
        assert_eq!(plain.headless(known).unwrap(), ["prog", "--dir=/a b"]);
    }

    #[test]
    fn what_is_filled_in_is_not_filled_again_and_other_braces_stay() {
        let rows = [
            ("{dir}", "/{vendor_session}"),
            ("{dir}{dir}", "/{vendor_session}/{vendor_session}"),
            ("{vendor_session}:{dir}", "{dir}:/{vendor_session}"),
            ("{print $1}", "{print $1}"),
            ("{ dir }", "{ dir }"),
            ("", ""),
        ];
        let filling = Filling { dir: "/{vendor_session}", vendor_session: Some("{dir}") };
        for (word, expected) in rows {
            assert_eq!(fill_word(word, filling).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn words_that_need_a_vendor_session_are_an_error_without_one() {
        let fresh = Filling { dir: "/", vendor_session: None };
        let resuming = Preset { command: words("prog {vendor_session}"), ..preset() };
        assert_eq!(resuming.headless(fresh), Err(NoVendorSession));
        assert_eq!(preset().interactive(fresh), None);
        let attached = Preset { interactive: Some(words("prog {vendor_session}")), ..preset() };
        assert_eq!(attached.interactive(fresh), Some(Err(NoVendorSession)));
    }

    #[test]
    fn a_layer_changes_what_it_names_and_a_preset_needs_a_command() {
        assert_eq!(
            PresetChanges { protocol: Some(Protocol::Acp), ..PresetChanges::default() }.preset(),
            None
        );
        let shipped = PresetChanges {
            command: Some(words("old {dir}")),
            protocol: Some(Protocol::Acp),
            ..PresetChanges::default()
        };
        let own = PresetChanges { command: Some(words("new")), ..PresetChanges::default() };
        let both = shipped.changed(&own).preset().unwrap();
        assert_eq!((both.command, both.protocol), (words("new"), Protocol::Acp));
    }
}
