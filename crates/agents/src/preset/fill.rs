//! The words to execute, with what a session knows filled in.

use super::{Preset, PromptBy, Protocol};

/// What may stand in the words of a preset.
pub const PLACEHOLDERS: [&str; 4] = ["{dir}", "{vendor_session}", "{prompt}", "{socket}"];

/// What is filled into the words of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling<'a> {
    /// `{dir}`: where the session runs.
    pub dir: &'a str,
    /// `{vendor_session}`: the agent's own session, once it is known.
    pub vendor_session: Option<&'a str>,
    /// `{prompt}`: the message that the run is for.
    pub prompt: Option<&'a str>,
    /// `{socket}`: where an agent that serves several clients listens, of this session alone.
    pub socket: &'a str,
}

/// Whether there is something to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transcript {
    /// The vendor has a session of this id.
    Exists,
    /// It has none.
    Missing,
}

/// The words cannot be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotFilled {
    /// They name a vendor session, and none is known yet.
    #[error("its command needs a vendor session, and none is known yet; `--vendor-session ID` names one")]
    NoVendorSession,
    /// They name a message, and the run is for none.
    #[error("its command needs a message, and this run has none")]
    NoPrompt,
    /// The preset has no command.
    #[error("its preset has no command")]
    NoCommand,
}

impl Preset {
    /// The words that start it without a terminal: `resume` on a known vendor session, else `command`.
    ///
    /// # Errors
    /// There are none, or they name what is not known.
    pub fn headless(&self, filling: Filling<'_>) -> Result<Vec<String>, NotFilled> {
        let resume = self.resume.as_ref().filter(|_| filling.vendor_session.is_some());
        fill(resume.or(self.command.as_ref()).ok_or(NotFilled::NoCommand)?, filling)
    }

    /// The words that start it without a terminal where the vendor's own file says whether there is a session to go on with:
    /// a vendor refuses to begin one that exists, and to resume one that does not.
    ///
    /// # Errors
    /// There are none, or they name what is not known.
    pub fn headless_on(
        &self,
        filling: Filling<'_>,
        transcript: Transcript,
    ) -> Result<Vec<String>, NotFilled> {
        match transcript {
            Transcript::Exists => self.headless(filling),
            Transcript::Missing => fill(self.command.as_ref().ok_or(NotFilled::NoCommand)?, filling),
        }
    }

    /// Whether its runs are told their message, where each is for one: by argument at `{prompt}`, or on standard input.
    #[must_use]
    pub fn has_place_for_prompt(&self) -> bool {
        if self.protocol != Protocol::Exec || self.exec.prompt == PromptBy::Stdin {
            return true;
        }
        let has = |words: &[String]| words.iter().any(|word| word.contains("{prompt}"));
        [&self.command, &self.resume].into_iter().flatten().all(|words| has(words))
    }

    /// The words that print its version, where the preset has them.
    #[must_use]
    pub fn version(&self) -> Option<&[String]> {
        self.version.as_deref()
    }

    /// The words that start the vendor's own terminal program, where the preset has one.
    ///
    /// # Errors
    /// They name what is not known.
    pub fn interactive(&self, filling: Filling<'_>) -> Option<Result<Vec<String>, NotFilled>> {
        self.interactive.as_ref().map(|words| fill(words, filling))
    }

    /// The same, where the vendor's own file says whether there is a session to go on with.
    ///
    /// # Errors
    /// They name what is not known.
    pub fn interactive_on(
        &self,
        filling: Filling<'_>,
        transcript: Transcript,
    ) -> Option<Result<Vec<String>, NotFilled>> {
        let new = self.interactive_new.as_ref().filter(|_| transcript == Transcript::Missing);
        new.map(|words| fill(words, filling)).or_else(|| self.interactive(filling))
    }
}

fn fill(words: &[String], filling: Filling<'_>) -> Result<Vec<String>, NotFilled> {
    words.iter().map(|word| fill_word(word, filling)).collect()
}

/// Fills each place once, from left to right: what is filled in is never looked at again.
fn fill_word(word: &str, filling: Filling<'_>) -> Result<String, NotFilled> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((at, place)) =
        PLACEHOLDERS.iter().filter_map(|place| Some((rest.find(place)?, *place))).min()
    {
        filled.push_str(&rest[..at]);
        filled.push_str(match place {
            "{dir}" => filling.dir,
            "{socket}" => filling.socket,
            "{prompt}" => filling.prompt.ok_or(NotFilled::NoPrompt)?,
            _ => filling.vendor_session.ok_or(NotFilled::NoVendorSession)?,
        });
        rest = &rest[at + place.len()..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Vec<String>> {
        Some(text.split(' ').map(str::to_owned).collect())
    }

    fn preset() -> Preset {
        Preset {
            command: words("prog --dir={dir}"),
            resume: words("prog --resume {vendor_session}"),
            ..Preset::default()
        }
    }

    const FRESH: Filling<'_> = Filling { dir: "/a b", vendor_session: None, prompt: None, socket: "/s" };

    #[test]
    fn a_known_vendor_session_is_resumed_and_an_unknown_one_begun() {
        assert_eq!(preset().headless(FRESH).unwrap(), ["prog", "--dir=/a b"]);
        let known = Filling { vendor_session: Some("id-1"), ..FRESH };
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
            ("{prompt}", "--help {dir}"),
            ("unix://{socket}", "unix:///{dir}.sock"),
            ("{print $1}", "{print $1}"),
            ("{ dir }", "{ dir }"),
            ("", ""),
        ];
        let filling = Filling {
            dir: "/{vendor_session}",
            vendor_session: Some("{dir}"),
            prompt: Some("--help {dir}"),
            socket: "/{dir}.sock",
        };
        for (word, expected) in rows {
            assert_eq!(fill_word(word, filling).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn an_agent_that_runs_for_each_message_has_a_place_for_it_in_every_command() {
        let exec = |command: &str, resume: Option<&str>| Preset {
            protocol: Protocol::Exec,
            command: words(command),
            resume: resume.and_then(words),
            ..Preset::default()
        };
        let rows = [
            (exec("prog --message={prompt}", None), true),
            (exec("prog", None), false),
            (exec("prog {prompt}", Some("prog --resume {vendor_session}")), false),
            (exec("prog {prompt}", Some("prog --resume {vendor_session} {prompt}")), true),
            (Preset { protocol: Protocol::Line, ..exec("prog", None) }, true),
        ];
        for (preset, has) in rows {
            assert_eq!(preset.has_place_for_prompt(), has, "{preset:?}");
        }
        let mut by_stdin = exec("prog", None);
        by_stdin.exec.prompt = PromptBy::Stdin;
        assert!(by_stdin.has_place_for_prompt());
    }

    #[test]
    fn words_that_need_what_is_not_known_are_an_error() {
        let rows = [
            (words("prog {vendor_session}"), NotFilled::NoVendorSession),
            (words("prog {prompt}"), NotFilled::NoPrompt),
            (None, NotFilled::NoCommand),
        ];
        for (command, error) in rows {
            assert_eq!(Preset { command, resume: None, ..preset() }.headless(FRESH), Err(error));
        }
        assert_eq!(preset().interactive(FRESH), None);
        let attached = Preset { interactive: words("prog {vendor_session}"), ..preset() };
        assert_eq!(attached.interactive(FRESH), Some(Err(NotFilled::NoVendorSession)));
    }
}
