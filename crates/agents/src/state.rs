//! The translators, one per protocol, and their states. A new protocol is a file, a variant and its arms
//! here.

use crate::acp::Acp;
use crate::codex::Codex;
use crate::exec::Exec;
use crate::intent::{CannotSay, Intent};
use crate::line::LineProtocol;
use crate::pi::Pi;
use crate::preset::Protocol;
use crate::scripted::Scripted;
use crate::setup::Setup;
use crate::stream_json::StreamJson;
use crate::translate::{RunView, Spoken, Translate, TranslatorInput};
use crate::word::AgentWord;
use serde::{Deserialize, Serialize};

/// The state of a run's translator. The names are stored in cursors, so they stay forever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TranslatorState {
    Line(LineProtocol),
    Exec(Box<Exec>),
    Scripted(Scripted),
    StreamJson(Box<StreamJson>),
    Acp(Box<Acp>),
    Pi(Box<Pi>),
    Codex(Box<Codex>),
    /// Nothing is known, so nothing is concluded: no turn ends.
    Unknown(UnknownState),
    #[cfg(test)]
    Fragile(tests::Fragile),
}

/// The state of a run that cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct UnknownState {}

impl TranslatorState {
    /// Returns the state of a new run.
    pub(crate) fn new(protocol: Protocol) -> TranslatorState {
        match protocol {
            Protocol::Line => TranslatorState::Line(LineProtocol::default()),
            Protocol::Exec => TranslatorState::Exec(Box::default()),
            Protocol::Scripted => TranslatorState::Scripted(Scripted::default()),
            Protocol::StreamJson => TranslatorState::StreamJson(Box::default()),
            Protocol::Acp => TranslatorState::Acp(Box::default()),
            Protocol::Pi => TranslatorState::Pi(Box::default()),
            Protocol::Codex => TranslatorState::Codex(Box::default()),
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, TranslatorState::Unknown(_))
    }

    pub(crate) fn translator(&self) -> &dyn Translate {
        match self {
            TranslatorState::Line(line) => line,
            TranslatorState::Exec(exec) => &**exec,
            TranslatorState::Scripted(scripted) => scripted,
            TranslatorState::StreamJson(claude) => &**claude,
            TranslatorState::Acp(acp) => &**acp,
            TranslatorState::Pi(pi) => &**pi,
            TranslatorState::Codex(codex) => &**codex,
            TranslatorState::Unknown(unknown) => unknown,
            #[cfg(test)]
            TranslatorState::Fragile(fragile) => fragile,
        }
    }

    pub(crate) fn translator_mut(&mut self) -> &mut dyn Translate {
        match self {
            TranslatorState::Line(line) => line,
            TranslatorState::Exec(exec) => &mut **exec,
            TranslatorState::Scripted(scripted) => scripted,
            TranslatorState::StreamJson(claude) => &mut **claude,
            TranslatorState::Acp(acp) => &mut **acp,
            TranslatorState::Pi(pi) => &mut **pi,
            TranslatorState::Codex(codex) => &mut **codex,
            TranslatorState::Unknown(unknown) => unknown,
            #[cfg(test)]
            TranslatorState::Fragile(fragile) => fragile,
        }
    }
}

impl Translate for UnknownState {
    fn hear(&mut self, _heard: TranslatorInput<'_>, _see: &RunView<'_>) -> Vec<AgentWord> {
        Vec::new()
    }

    fn say(&self, _number: u64, intent: &Intent, _see: &RunView<'_>) -> Result<Spoken, CannotSay> {
        match intent {
            Intent::Close => Ok(Spoken::end()),
            Intent::Handshake { .. } | Intent::Prompt(_) | Intent::Answer(_) | Intent::Interrupt => {
                Err(CannotSay::Unknown)
            }
        }
    }

    fn tells_activity(&self, _setup: &Setup) -> bool {
        false
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::word::NamedTurn;

    /// A translator that fails at some lines, in the middle of its work.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub(crate) struct Fragile {
        pub(crate) lines: u32,
        pub(crate) load: String,
    }

    impl Translate for Fragile {
        fn hear(&mut self, heard: TranslatorInput<'_>, _see: &RunView<'_>) -> Vec<AgentWord> {
            let TranslatorInput::Line { bytes, .. } = heard else { return Vec::new() };
            self.lines += 1;
            match bytes {
                b"panic" => panic!("no such line"),
                b"ready" => vec![AgentWord::Ready],
                b"began" => vec![AgentWord::Began(NamedTurn::Own)],
                other => {
                    self.load = String::from_utf8_lossy(other).into_owned();
                    Vec::new()
                }
            }
        }

        fn say(&self, _number: u64, _intent: &Intent, _see: &RunView<'_>) -> Result<Spoken, CannotSay> {
            panic!("no such word")
        }
    }
}
