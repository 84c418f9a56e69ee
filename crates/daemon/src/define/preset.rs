//! What an agent's name stands for, as `config.toml` says it: the presets are those of `crates/agents`, the words are here.
//!
//! [`Config::preset`](crate::define::config::Config::preset) has the preset of a name; [`Preset::headless`] and
//! [`Preset::interactive`] make the words to execute, with what a session knows filled in.

pub use pinfold_agents::preset::{
    Exec, ExecChanges, Filling, Input, NotFilled, PLACEHOLDERS, Preset, PresetChanges, PromptBy, Protocol,
    SessionIds, Turns,
};
use pinfold_agents::{Fold, Setup};
use pinfold_core::RunNumber;

/// The agent that runs any program.
pub(crate) const COMMAND: &str = "command";

/// What stands for the message that a run is for, until that is known.
pub(crate) const PROMPT: &str = "{prompt}";

/// The words of `config.toml` for protocols.
pub const PROTOCOLS: [(&str, Protocol); 7] = [
    ("line", Protocol::Line),
    ("exec", Protocol::Exec),
    ("stream-json", Protocol::StreamJson),
    ("codex", Protocol::Codex),
    ("acp", Protocol::Acp),
    ("pi", Protocol::Pi),
    ("scripted", Protocol::Scripted),
];

/// The words of `config.toml` and of `--input`.
pub(crate) const INPUTS: [(&str, Input); 2] = [("line", Input::Line), ("json", Input::Json)];

/// The words of `config.toml` and of `--turns`.
pub(crate) const TURNS: [(&str, Turns); 2] = [("line", Turns::Line), ("done", Turns::Done)];

/// The words of `config.toml` for how a vendor session's id comes about.
pub(crate) const SESSION_IDS: [(&str, SessionIds); 3] =
    [("choose", SessionIds::Choose), ("learn", SessionIds::Learn), ("none", SessionIds::None)];

/// What a word of one of these tables stands for.
pub(crate) fn of_word<T: Copy>(words: &[(&str, T)], said: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == said).map(|(_, known)| *known)
}

/// The word of a protocol.
#[must_use]
pub fn protocol_word(protocol: Protocol) -> &'static str {
    PROTOCOLS.iter().find(|(_, known)| *known == protocol).map_or("?", |(word, _)| word)
}

/// Whether this version speaks a protocol.
pub(crate) fn is_spoken(protocol: Protocol) -> bool {
    let setup = Setup { protocol, ..Setup::default() };
    !Fold::begin(RunNumber(1), setup).0.is_unknown()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_word_and_those_with_a_translator_are_spoken() {
        for (word, protocol) in PROTOCOLS {
            assert_eq!((protocol_word(protocol), of_word(&PROTOCOLS, word)), (word, Some(protocol)));
        }
        assert!([Protocol::Line, Protocol::Exec, Protocol::Scripted].into_iter().all(is_spoken));
        assert!(!is_spoken(Protocol::Pi));
    }
}
