//! A preset's command words, with a session's values filled in.

use super::{Preset, PromptBy, Protocol};

/// The placeholders that a preset's words may contain.
pub const PLACEHOLDERS: [&str; 4] = ["{dir}", "{vendor_session}", "{prompt}", "{socket}"];

/// The values for a preset's placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling<'a> {
    /// `{dir}`: the session's directory.
    pub dir: &'a str,
    /// `{vendor_session}`: the vendor session, once it is known.
    pub vendor_session: Option<&'a str>,
    /// `{prompt}`: the message that the run is for.
    pub prompt: Option<&'a str>,
    /// `{socket}`: where an agent that serves several clients listens, for this session alone.
    pub socket: &'a str,
}

/// Whether there is a vendor session to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VendorTranscript {
    /// The vendor has a session with this id.
    Exists,
    /// The vendor has no session with this id.
    Missing,
}

/// Why the words cannot be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotFilled {
    /// They need a vendor session, and none is known yet.
    #[error("its command needs a vendor session, and none is known yet; `--vendor-session ID` names one")]
    NoVendorSession,
    /// They need a message, and the run is not for one.
    #[error("its command needs a message, and this run has none")]
    NoPrompt,
    /// The preset has no command.
    #[error("its preset has no command")]
    NoCommand,
}

impl Preset {
    /// Returns the words that start the agent without a terminal: `resume` if the vendor session is known,
    /// else `command`.
    ///
    /// # Errors
    /// The preset has no such words, or they need a value that is not known.
    pub fn headless(&self, filling: Filling<'_>) -> Result<Vec<String>, NotFilled> {
        let resume = self.resume.as_ref().filter(|_| filling.vendor_session.is_some());
        fill(resume.or(self.command.as_ref()).ok_or(NotFilled::NoCommand)?, filling)
    }

    /// Returns the words that start the agent without a terminal if the vendor's own file shows whether there
    /// is a session to resume: a vendor refuses to create a session that exists, and to resume one that does
    /// not.
    ///
    /// # Errors
    /// The preset has no such words, or they need a value that is not known.
    pub fn headless_on(
        &self,
        filling: Filling<'_>,
        transcript: VendorTranscript,
    ) -> Result<Vec<String>, NotFilled> {
        match transcript {
            VendorTranscript::Exists => self.headless(filling),
            VendorTranscript::Missing => fill(self.command.as_ref().ok_or(NotFilled::NoCommand)?, filling),
        }
    }

    /// Returns whether a run for one message can be given it: as an argument at `{prompt}`, or on standard
    /// input.
    #[must_use]
    pub fn has_place_for_prompt(&self) -> bool {
        if self.protocol != Protocol::Exec || self.exec.prompt == PromptBy::Stdin {
            return true;
        }
        let has = |words: &[String]| words.iter().any(|word| word.contains("{prompt}"));
        [&self.command, &self.resume].into_iter().flatten().all(|words| has(words))
    }

    /// Returns whether a message that begins with `-` can be read as an option: in some command, `{prompt}`
    /// begins a word, and no `--` stands before it.
    #[must_use]
    pub fn reads_prompt_as_option(&self) -> bool {
        if self.protocol != Protocol::Exec || self.exec.prompt == PromptBy::Stdin {
            return false;
        }
        let bare = |words: &[String]| {
            let options = words.iter().take_while(|word| *word != "--");
            options.skip(1).any(|word| word.starts_with("{prompt}"))
        };
        [&self.command, &self.resume].into_iter().flatten().any(|words| bare(words))
    }

    /// Returns the words that print the agent's version, if the preset has them.
    #[must_use]
    pub fn version(&self) -> Option<&[String]> {
        self.version.as_deref()
    }

    /// Returns the words that start the vendor's own terminal program, if the preset has one.
    ///
    /// # Errors
    /// They need a value that is not known.
    pub fn interactive(&self, filling: Filling<'_>) -> Option<Result<Vec<String>, NotFilled>> {
        self.interactive.as_ref().map(|words| fill(words, filling))
    }

    /// The same, if the vendor's own file shows whether there is a session to resume.
    ///
    /// # Errors
    /// They need a value that is not known.
    pub fn interactive_on(
        &self,
        filling: Filling<'_>,
        transcript: VendorTranscript,
    ) -> Option<Result<Vec<String>, NotFilled>> {
        let new = self.interactive_new.as_ref().filter(|_| transcript == VendorTranscript::Missing);
        new.map(|words| fill(words, filling)).or_else(|| self.interactive(filling))
    }
}

fn fill(words: &[String], filling: Filling<'_>) -> Result<Vec<String>, NotFilled> {
    words.iter().map(|word| fill_word(word, filling)).collect()
}

/// Fills each placeholder once, from left to right; filled-in text is never scanned again.
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
    fn a_message_is_read_as_an_option_only_where_it_begins_a_word_before_two_dashes() {
        let rows = [
            ("prog {prompt}", None, true),
            ("prog -p {prompt}", None, true),
            ("prog {prompt}.", None, true),
            ("prog --message={prompt}", None, false),
            ("prog -- {prompt}", None, false),
            ("prog -p -- {prompt}", None, false),
            ("prog --message={prompt}", Some("prog {prompt}"), true),
            ("prog", None, false),
        ];
        for (command, resume, expected) in rows {
            let resume = resume.and_then(words);
            let exec =
                Preset { command: words(command), resume, protocol: Protocol::Exec, ..Preset::default() };
            assert_eq!(exec.reads_prompt_as_option(), expected, "{command}");
            assert!(!Preset { protocol: Protocol::Line, ..exec }.reads_prompt_as_option(), "{command}");
        }
    }

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
