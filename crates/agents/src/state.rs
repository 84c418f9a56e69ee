//! The translators, one per protocol, and their states. A new protocol is a file, a variant and its arms
//! here.

use crate::acp::Acp;
use crate::codex::Codex;
use crate::exec::Exec;
use crate::intent::{CannotSay, Intent};
use crate::line::Line;
use crate::pi::Pi;
use crate::preset::Protocol;
use crate::scripted::Scripted;
use crate::setup::Setup;
use crate::stream_json::StreamJson;
use crate::translate::{Heard, Spoken, Translate, View};
use crate::word::Word;
use serde::{Deserialize, Serialize};

/// The state of a run's translator. The names are stored in cursors, so they stay forever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    Line(Line),
    Exec(Box<Exec>),
    Scripted(Scripted),
    StreamJson(Box<StreamJson>),
    Acp(Box<Acp>),
    Pi(Box<Pi>),
    Codex(Box<Codex>),
    /// Nothing is known, so nothing is concluded: no turn ends.
    Unknown(Unknown),
    #[cfg(test)]
    Fragile(tests::Fragile),
}

/// The state of a run that cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Unknown {}

impl State {
    /// Returns the state of a new run.
    pub(crate) fn new(protocol: Protocol) -> State {
        match protocol {
            Protocol::Line => State::Line(Line::default()),
            Protocol::Exec => State::Exec(Box::default()),
            Protocol::Scripted => State::Scripted(Scripted::default()),
            Protocol::StreamJson => State::StreamJson(Box::default()),
            Protocol::Acp => State::Acp(Box::default()),
            Protocol::Pi => State::Pi(Box::default()),
            Protocol::Codex => State::Codex(Box::default()),
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, State::Unknown(_))
    }

    pub(crate) fn translator(&self) -> &dyn Translate {
        match self {
            State::Line(line) => line,
            State::Exec(exec) => &**exec,
            State::Scripted(scripted) => scripted,
            State::StreamJson(claude) => &**claude,
            State::Acp(acp) => &**acp,
            State::Pi(pi) => &**pi,
            State::Codex(codex) => &**codex,
            State::Unknown(unknown) => unknown,
            #[cfg(test)]
            State::Fragile(fragile) => fragile,
        }
    }

    pub(crate) fn translator_mut(&mut self) -> &mut dyn Translate {
        match self {
            State::Line(line) => line,
            State::Exec(exec) => &mut **exec,
            State::Scripted(scripted) => scripted,
            State::StreamJson(claude) => &mut **claude,
            State::Acp(acp) => &mut **acp,
            State::Pi(pi) => &mut **pi,
            State::Codex(codex) => &mut **codex,
            State::Unknown(unknown) => unknown,
            #[cfg(test)]
            State::Fragile(fragile) => fragile,
        }
    }
}

impl Translate for Unknown {
    fn hear(&mut self, _heard: Heard<'_>, _see: &View<'_>) -> Vec<Word> {
        Vec::new()
    }

    fn say(&self, _number: u64, intent: &Intent, _see: &View<'_>) -> Result<Spoken, CannotSay> {
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
    use crate::word::Named;

    /// A translator that fails at some lines, in the middle of its work.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub(crate) struct Fragile {
        pub(crate) lines: u32,
        pub(crate) load: String,
    }

    impl Translate for Fragile {
        fn hear(&mut self, heard: Heard<'_>, _see: &View<'_>) -> Vec<Word> {
            let Heard::Line { bytes, .. } = heard else { return Vec::new() };
            self.lines += 1;
            match bytes {
                b"panic" => panic!("no such line"),
                b"ready" => vec![Word::Ready],
                b"began" => vec![Word::Began(Named::Own)],
                other => {
                    self.load = String::from_utf8_lossy(other).into_owned();
                    Vec::new()
                }
            }
        }

        fn say(&self, _number: u64, _intent: &Intent, _see: &View<'_>) -> Result<Spoken, CannotSay> {
            panic!("no such word")
        }
    }
}
