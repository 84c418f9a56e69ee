//! A conversation that its session cannot go on with, although something was said in it.
//!
//! A new one is begun only when a person asks for it: an agent that knows nothing of what was said must not
//! answer as if it did.

use crate::ids::RunNumber;
use serde::{Deserialize, Serialize};

/// A conversation that was lost, and how that showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostConversation {
    /// The run that was to continue it.
    pub run: RunNumber,
    /// The vendor's id of it.
    pub id: Option<String>,
    /// How it showed.
    pub how: LostHow,
    /// Where the vendor stores its conversations, as a person would write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is known besides, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// How it showed that a conversation is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostHow {
    /// Its vendor does not have it.
    Gone,
    /// Its vendor has it and cannot read it.
    Unreadable,
    /// Its vendor opens it in another directory only.
    Elsewhere,
    /// Its vendor opened another one in its place.
    Replaced,
    /// Its vendor has it without all that was answered in it.
    Incomplete,
}

impl LostHow {
    /// Returns its word in events.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            LostHow::Gone => "gone",
            LostHow::Unreadable => "unreadable",
            LostHow::Elsewhere => "elsewhere",
            LostHow::Replaced => "replaced",
            LostHow::Incomplete => "incomplete",
        }
    }
}

impl LostConversation {
    /// Returns what happened to the conversation of the session with this name.
    #[must_use]
    pub fn sentence(&self, session: &str) -> String {
        let place = |before: &str| self.place.as_ref().map(|at| format!("{before} {at}")).unwrap_or_default();
        let text = self.text.as_ref().map(|text| format!(" (`{text}`)")).unwrap_or_default();
        match self.how {
            LostHow::Gone => format!("the conversation of `{session}` is gone{}", place(" from")),
            LostHow::Unreadable => {
                format!("the agent cannot read the conversation of `{session}`{}{text}", place(" in"))
            }
            LostHow::Elsewhere => {
                format!("the agent does not open the conversation of `{session}` in this directory{text}")
            }
            LostHow::Replaced => {
                format!("the agent opened another conversation than that of `{session}`{text}")
            }
            LostHow::Incomplete => {
                format!("the conversation of `{session}`{} lacks what was said last{text}", place(" in"))
            }
        }
    }

    /// Returns the one thing to do about it.
    #[must_use]
    pub fn next_step(&self, session: &str) -> String {
        let anew = format!("run `pinfold set {session} --new-conversation` to begin a new one");
        match self.how {
            LostHow::Elsewhere => {
                format!(
                    "run `pinfold set {session} --dir DIR` with the directory of the conversation, or {anew}"
                )
            }
            LostHow::Gone | LostHow::Unreadable | LostHow::Replaced | LostHow::Incomplete => anew,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_and_what_helps_are_told_with_the_sessions_name() {
        let lost = |how, place: Option<&str>, text: Option<&str>| {
            let (place, text) = (place.map(str::to_owned), text.map(str::to_owned));
            let lost = LostConversation { run: RunNumber(2), id: Some("s-1".into()), how, place, text };
            format!("{}; {}", lost.sentence("api"), lost.next_step("api"))
        };
        let anew = "run `pinfold set api --new-conversation` to begin a new one";
        let rows = [
            (
                lost(LostHow::Gone, Some("~/.claude"), None),
                format!("the conversation of `api` is gone from ~/.claude; {anew}"),
            ),
            (lost(LostHow::Gone, None, None), format!("the conversation of `api` is gone; {anew}")),
            (
                lost(LostHow::Unreadable, Some("~/.codex"), Some("bad line")),
                format!("the agent cannot read the conversation of `api` in ~/.codex (`bad line`); {anew}"),
            ),
            (
                lost(LostHow::Elsewhere, None, None),
                format!(
                    "the agent does not open the conversation of `api` in this directory; \
                     run `pinfold set api --dir DIR` with the directory of the conversation, or {anew}"
                ),
            ),
            (
                lost(LostHow::Replaced, None, None),
                format!("the agent opened another conversation than that of `api`; {anew}"),
            ),
            (
                lost(LostHow::Incomplete, Some("~/.pi/agent"), None),
                format!("the conversation of `api` in ~/.pi/agent lacks what was said last; {anew}"),
            ),
        ];
        for (told, expected) in rows {
            assert_eq!(told, expected);
        }
    }
}
