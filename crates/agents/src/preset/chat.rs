//! Messages that an agent would treat as a command of its terminal instead of showing them to its model.
//!
//! Agents do that by the first letters, some in every form of theirs. Gemini leaves such a message out when it
//! resumes; Claude Code obeys `/clear the cache` like `/clear`; opencode swallows whatever begins with `/`. So a
//! word stands in front of such a message, unless it is one of the commands that pinfold knows to work.

use serde::{Deserialize, Serialize};

/// Stands in front of a message that the agent would take for a command.
const WORD: &str = "[message] ";

/// What an agent takes for a command, and which commands are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatCommands {
    /// Beginnings of messages that the agent does not treat as a text, such as `/`.
    pub marks: Vec<String>,
    /// Messages that are passed on as they are; a `*` at the end matches any rest.
    pub commands: Vec<String>,
}

impl ChatCommands {
    /// Returns whether the agent treats every message as a text.
    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.commands.is_empty()
    }

    /// Returns a message that is a command, as the agent gets it.
    pub(crate) fn command<'t>(&self, text: &'t str) -> Option<&'t str> {
        let text = text.trim();
        let matches = |command: &String| match command.strip_suffix('*') {
            Some(begin) => text.starts_with(begin),
            None => text == command,
        };
        self.commands.iter().any(matches).then_some(text)
    }

    /// Returns a text in the form in which the agent takes it for one.
    pub(crate) fn as_text(&self, text: String) -> String {
        // Agents trim a message before they look at its beginning.
        let begins = text.trim_start();
        let marked = self.marks.iter().any(|mark| begins.starts_with(mark.as_str()));
        if marked { format!("{WORD}{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_command_is_one_and_a_text_never_begins_with_a_mark() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let chat = ChatCommands { marks: words(&["/", "?"]), commands: words(&["/clear", "/mine *"]) };
        let rows = [
            ("/clear", Some("/clear"), "[message] /clear"),
            (" /clear\n", Some("/clear"), "[message]  /clear\n"),
            ("/clear the build cache", None, "[message] /clear the build cache"),
            ("/clearing", None, "[message] /clearing"),
            ("/mine 7", Some("/mine 7"), "[message] /mine 7"),
            ("/mine", None, "[message] /mine"),
            ("/tmp/x is full", None, "[message] /tmp/x is full"),
            ("\n ?why", None, "[message] \n ?why"),
            ("why? a/b", None, "why? a/b"),
            ("- a list", None, "- a list"),
            ("", None, ""),
        ];
        for (text, command, as_text) in rows {
            assert_eq!(chat.command(text), command, "{text:?}");
            assert_eq!(chat.as_text(text.to_owned()), as_text, "{text:?}");
        }
        let none = ChatCommands::default();
        assert!(none.is_empty() && none.command("/clear").is_none());
        assert_eq!(none.as_text("/clear".to_owned()), "/clear");
    }
}
