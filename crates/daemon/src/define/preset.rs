//! Presets by the words of `config.toml`: the presets are those of `crates/agents`, the words are here.
//!
//! [`Config::preset`](crate::define::config::Config::preset) has the preset of a name; [`Preset::headless`]
//! and [`Preset::interactive`] make the command to execute, with what a session knows filled in.

pub use pinfold_agents::preset::{
    AttachMode, Does, ExecChanges, ExecRules, Filling, IdFile, IdFileKeys, LONGEST_ID_FILE, LONGEST_ROSTER,
    Meaning, MessageFormat, NotAnEntry, NotFilled, PLACEHOLDERS, Preset, PresetChanges, PromptBy, Protocol,
    Recognises, SessionIds, TurnEndRule, VendorDaemon, VendorIdForm, VendorStore, VendorTranscript,
    from_registry, pid_in,
};
use pinfold_agents::{Fold, Setup};
use pinfold_core::RunNumber;

/// The agent that runs any program.
pub(crate) const COMMAND: &str = "command";

/// Stands for the message that a run is for, until that is known.
pub(crate) const PROMPT: &str = "{prompt}";

/// Stands for the socket on which an agent listens, until it is started.
pub(crate) const SOCKET: &str = "{socket}";

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
pub(crate) const INPUTS: [(&str, MessageFormat); 2] =
    [("line", MessageFormat::Line), ("json", MessageFormat::Json)];

/// The words of `config.toml` and of `--turns`.
pub(crate) const TURNS: [(&str, TurnEndRule); 2] = [("line", TurnEndRule::Line), ("done", TurnEndRule::Done)];

/// The words of `config.toml` for where a vendor session's id comes from.
pub(crate) const SESSION_IDS: [(&str, SessionIds); 3] =
    [("choose", SessionIds::Choose), ("learn", SessionIds::Learn), ("none", SessionIds::None)];

/// The words of `config.toml` for what `attach` does.
pub(crate) const ATTACHES: [(&str, AttachMode); 2] =
    [("takeover", AttachMode::Takeover), ("join", AttachMode::Join)];

/// The value for a word of one of these tables.
pub(crate) fn of_word<T: Copy>(words: &[(&str, T)], said: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == said).map(|(_, known)| *known)
}

/// The word for a value of one of these tables.
pub(crate) fn word_of<T: PartialEq>(words: &[(&'static str, T)], of: &T) -> &'static str {
    words.iter().find(|(_, known)| known == of).map_or("?", |(word, _)| word)
}

/// The word of a protocol.
#[must_use]
pub fn protocol_word(protocol: Protocol) -> &'static str {
    PROTOCOLS.iter().find(|(_, known)| *known == protocol).map_or("?", |(word, _)| word)
}

/// Whether this version supports a protocol.
pub(crate) fn is_spoken(protocol: Protocol) -> bool {
    let setup = Setup { protocol, ..Setup::default() };
    !Fold::begin(RunNumber(1), setup).0.is_unknown()
}

/// A random id for a vendor session: a UUID of version 4, accepted by every vendor that accepts one at all.
pub(crate) fn chosen(dice: u128) -> String {
    let bits = dice & !(0xf << 76 | 0x3 << 62) | (0x4 << 76 | 0x2 << 62);
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_id_is_a_uuid_of_version_4() {
        assert_eq!(chosen(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(chosen(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn every_protocol_has_its_word_and_those_with_a_translator_are_spoken() {
        for (word, protocol) in PROTOCOLS {
            assert_eq!((protocol_word(protocol), of_word(&PROTOCOLS, word)), (word, Some(protocol)));
        }
        let spoken = [Protocol::Line, Protocol::Exec, Protocol::Acp, Protocol::Pi, Protocol::Scripted];
        assert!(spoken.into_iter().all(is_spoken));
    }
}
