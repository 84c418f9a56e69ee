//! `config.toml`: settings for all, for an agent, for a session, and the agents themselves. What cannot be
//! read is an error with its line.
//!
//! [`Config`] is the file as serde reads it, table by table; `node.rs` reads what `toml` has parsed into it
//! and says what is wrong, `value.rs` has the forms of values.

mod accounts;
mod agents;
mod attach;
pub(crate) mod declared;
mod node;
mod policy;
pub(crate) mod reading;
mod retention;
mod tui;
mod value;

use crate::caller::Act;
use crate::define::preset::{Preset, Protocol};
use crate::log::Level;
pub(crate) use accounts::AccountBounds;
use accounts::AccountsTable;
use agents::AgentTable;
use attach::AttachTable;
use pinfold_agents::preset::{names, shipped};
use pinfold_api::Name;
use pinfold_terminal::Allow;
use policy::Changes;
pub use policy::{Confined, Settings};
use reading::{broken, line_of};
pub use retention::Retention;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toml::de::DeTable;
pub use tui::{ACTS, Colors, NOTIFY, ThemeSetting, TuiSettings};
use value::{Word, WordTable};

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    policy: Changes,
    #[serde(deserialize_with = "agents::read")]
    agents: BTreeMap<String, AgentTable>,
    sessions: BTreeMap<Name, OfSession>,
    accounts: AccountsTable,
    retention: Retention,
    attach: AttachTable,
    log: Log,
    tui: tui::TuiTable,
}

/// `[log]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Log {
    level: Option<Word<Level>>,
}

impl WordTable for Level {
    const WORDS: &'static [(&'static str, Level)] = &Level::WORDS;
}

/// `[sessions.NAME]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OfSession {
    policy: Changes,
}

/// Why the file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ConfigError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file exists and cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// It names programs that run as this user, and another user can write it.
    #[error("{} can be written by another user (it belongs to user {owner}, mode {bits:04o})", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// Its permission bits.
        bits: u32,
    },
    /// Something in it is wrong.
    #[error("{}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The error and its line.
        #[source]
        source: ConfigError,
    },
}

/// Loads the configuration; a missing file counts as empty.
///
/// # Errors
/// The file cannot be read, or something in it is wrong.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    let wrong = |source| LoadError::Wrong { path: path.to_owned(), source };
    match read(path) {
        Ok((facts, _)) if !is_ours(&facts) => {
            let (path, bits) = (path.to_owned(), facts.mode() & 0o7777);
            Err(LoadError::NotOurs { path, owner: facts.uid(), bits })
        }
        Ok((_, bytes)) => decoded(&bytes).and_then(Config::parse).map_err(wrong),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Config::default()),
        Err(source) => Err(LoadError::Unreadable { path: path.to_owned(), source }),
    }
}

fn read(path: &Path) -> io::Result<(Metadata, Vec<u8>)> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((file.metadata()?, bytes))
}

/// Whether only this user or root can have written it.
fn is_ours(facts: &Metadata) -> bool {
    let own = rustix::process::geteuid().as_raw();
    (facts.uid() == own || facts.uid() == 0) && facts.mode() & 0o022 == 0
}

fn decoded(bytes: &[u8]) -> Result<&str, ConfigError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        ConfigError { line: line_of(&before, before.len()), problem: "this is not UTF-8 text".into() }
    })
}

impl Config {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first line that cannot be used, and why.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let root = DeTable::parse(text).map_err(|error| broken(text, &error))?;
        node::read(text, root.get_ref())
    }

    /// The settings of a session: those for all, then its agent's, then its own.
    #[must_use]
    pub fn settings(&self, agent: &str, session: &str) -> Settings {
        let mut settings = Settings::default();
        let agent = self.agents.get(agent).map(|agent| &agent.policy);
        let own = self.sessions.get(session).map(|session| &session.policy);
        for layer in [Some(&self.policy), agent, own].into_iter().flatten() {
            settings.change(layer);
        }
        settings
    }

    /// How much the daemon logs.
    pub(crate) fn log_level(&self) -> Level {
        self.log.level.map_or(Level::default(), |word| word.0)
    }

    /// The name of an account that would be called `made` without one from the file.
    pub(crate) fn account_name(&self, made: String) -> String {
        self.accounts.name(made)
    }

    /// The bounds of an account.
    pub(crate) fn account_bounds(&self, name: &str) -> AccountBounds {
        self.accounts.bounds(name)
    }

    /// The accounts that the file names.
    pub(crate) fn account_names(&self) -> Vec<String> {
        self.accounts.names().collect()
    }

    /// How long history is kept.
    #[must_use]
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// What a session's program may do to the terminal of an attached client.
    #[must_use]
    pub fn attach(&self) -> Allow {
        self.attach.allow
    }

    /// The settings of the terminal UI.
    #[must_use]
    pub fn tui(&self) -> TuiSettings {
        self.tui.tui()
    }

    /// The preset of this name: what pinfold ships, and what the file says on top of that, key by key. `None`
    /// if neither says how to start it.
    #[must_use]
    pub fn preset(&self, agent: &str) -> Option<Preset> {
        let own = self.agents.get(agent);
        let below = shipped(agent).filter(|_| own.is_none_or(AgentTable::changes_shipped));
        let preset = match (below, own.map(AgentTable::preset)) {
            (Some(below), Some(own)) => below.changed(&own),
            (below, own) => below.or(own)?,
        };
        let preset = preset.preset();
        // Any program can speak the Agent Client Protocol: each session may name its own.
        let named_by_session = preset.protocol == Protocol::Acp;
        (preset.command.is_some() || named_by_session).then_some(preset)
    }

    /// The preset of the agent whose program has this name, in whatever folder.
    pub(crate) fn preset_of_program(&self, program: &str) -> Option<Preset> {
        let name = Path::new(program).file_name();
        let starts = |preset: &Preset| {
            let word = preset.command.as_ref().and_then(|words| words.first());
            word.is_some_and(|word| Path::new(word).file_name() == name)
        };
        self.presets().map(|(_, preset)| preset).find(starts)
    }

    /// What the runs of an agent may do as if they were a person.
    pub(crate) fn may(&self, agent: &str) -> &[Act] {
        self.agents.get(agent).and_then(AgentTable::may).unwrap_or_default()
    }

    /// Whether the runs of any agent may do this as if they were a person.
    pub(crate) fn any_may(&self, act: Act) -> bool {
        self.agents.values().any(|agent| agent.may().is_some_and(|may| may.contains(&act)))
    }

    /// The agents that have a preset, by name.
    pub fn presets(&self) -> impl Iterator<Item = (&str, Preset)> {
        let shipped = names().map(|name| -> &str { name });
        let all: BTreeSet<&str> = self.agents.keys().map(String::as_str).chain(shipped).collect();
        all.into_iter().filter_map(|name| Some((name, self.preset(name)?)))
    }
}

#[cfg(test)]
mod tests;
