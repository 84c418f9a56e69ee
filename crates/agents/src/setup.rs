//! What a run was started with, as far as its translator needs it. It is part of the cursor: a preset that
//! changes during a run affects only the next one.

use crate::message_word;
use crate::preset::{ChatCommands, ExecRules, MessageFormat, Preset, Protocol, TurnEndRule, VendorIdForm};
use pinfold_core::MessageId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a run was started with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// How pinfold speaks with the agent.
    pub protocol: Protocol,
    /// How a message is written, for protocol `line`.
    pub input: MessageFormat,
    /// When a turn is over, for protocol `line`.
    pub turns: TurnEndRule,
    /// How its output is read, for protocol `exec`.
    pub exec: ExecRules,
    /// What threads are opened with, for protocol `codex`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub thread: BTreeMap<String, String>,
    /// An exit whose last lines have this text means that another process holds what the agent needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contended_if: Option<String>,
    /// Which messages it would take for commands of its terminal.
    #[serde(skip_serializing_if = "ChatCommands::is_empty")]
    pub chat: ChatCommands,
    /// The session's directory.
    pub dir: String,
    /// The vendor session, if it was known before the start.
    pub vendor_session: Option<String>,
    /// Something was said in it: no other one may be begun in its place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_resumes: bool,
    /// The form of its vendor's ids.
    #[serde(skip_serializing_if = "VendorIdForm::is_word")]
    pub vendor_id: VendorIdForm,
    /// The message that the run was decided for, for protocol `exec`.
    #[serde(with = "message_word::maybe", skip_serializing_if = "Option::is_none")]
    pub prompted: Option<MessageId>,
}

impl Setup {
    /// Returns the setup for a run of this preset.
    #[must_use]
    pub fn new(preset: &Preset, dir: &str, vendor_session: Option<&str>) -> Setup {
        Setup {
            protocol: preset.protocol,
            input: preset.input,
            turns: preset.turns,
            exec: preset.exec.clone(),
            thread: preset.thread.clone(),
            contended_if: None,
            chat: preset.chat.clone(),
            dir: dir.to_owned(),
            vendor_session: vendor_session.map(str::to_owned),
            only_resumes: false,
            vendor_id: preset.vendor_id,
            prompted: None,
        }
    }
}
