//! Presets: what an agent's name stands for. Data only: pinfold ships `presets/NAME.toml`, and the user's
//! table `[agents.NAME]` changes them key by key.

mod chat;
mod fill;
mod id_file;
mod reads;
mod recognises;
mod registry;
mod shipped;
mod vendor_daemon;
mod vendor_id;
mod vendor_store;

pub use chat::ChatCommands;
pub use fill::{Filling, NotFilled, PLACEHOLDERS, VendorTranscript};
pub use id_file::{Does, IdFile, IdFileKeys, LONGEST_ID_FILE};
pub use reads::{EndsTurn, Joined, ReadRule, UsageAt};
pub use recognises::{ExitCode, Meaning, Recognises, pid_in};
pub use registry::{NotAnEntry, from_registry};
pub use shipped::{names, shipped};
pub use vendor_daemon::{LONGEST_ROSTER, VendorDaemon};
pub use vendor_id::VendorIdForm;
pub use vendor_store::VendorStore;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one layer of the configuration changes in an agent's preset; missing keys keep the value of the layer
/// below.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PresetChanges {
    /// See [`Preset::command`].
    pub command: Option<Vec<String>>,
    /// See [`Preset::resume`].
    pub resume: Option<Vec<String>>,
    /// See [`Preset::interactive`].
    pub interactive: Option<Vec<String>>,
    /// See [`Preset::interactive_new`].
    pub interactive_new: Option<Vec<String>>,
    /// See [`Preset::protocol`].
    pub protocol: Option<Protocol>,
    /// See [`Preset::session`].
    pub session: Option<SessionIds>,
    /// See [`Preset::env`].
    pub env: Option<Vec<String>>,
    /// See [`Preset::attach`].
    pub attach: Option<AttachMode>,
    /// See [`Preset::input`].
    pub input: Option<MessageFormat>,
    /// See [`Preset::turns`].
    pub turns: Option<TurnEndRule>,
    /// See [`Preset::exec`].
    pub exec: ExecChanges,
    /// See [`Preset::recognises`].
    pub recognises: Option<Recognises>,
    /// See [`Preset::thread`].
    pub thread: Option<BTreeMap<String, String>>,
    /// See [`Preset::version`].
    pub version: Option<Vec<String>>,
    /// See [`Preset::pty`].
    pub pty: Option<bool>,
    /// See [`Preset::store`].
    pub store: Option<VendorStore>,
    /// See [`Preset::transcript`].
    pub transcript: Option<String>,
    /// See [`Preset::id_file`].
    pub id_file: Option<String>,
    /// See [`Preset::id_file_keys`].
    pub id_file_keys: Option<IdFileKeys>,
    /// See [`Preset::last_line`].
    pub last_line: Option<String>,
    /// See [`Preset::spool_key`].
    pub spool_key: Option<String>,
    /// See [`Preset::vendor_id`].
    pub vendor_id: Option<VendorIdForm>,
    /// See [`Preset::writer_lock`].
    pub writer_lock: Option<String>,
    /// See [`Preset::vendor_daemon`].
    pub vendor_daemon: Option<VendorDaemon>,
    /// See [`Preset::set`].
    pub set: Option<BTreeMap<String, String>>,
    /// See [`Preset::strip`].
    pub strip: Option<Vec<String>>,
    /// See [`ChatCommands::marks`].
    pub chat_marks: Option<Vec<String>>,
    /// See [`ChatCommands::commands`].
    pub chat_commands: Option<Vec<String>>,
    /// See [`Preset::unfollowed`].
    pub unfollowed: Option<Vec<String>>,
    /// See [`Preset::install`].
    pub install: Option<String>,
    /// See [`Preset::proven`].
    pub proven: Option<Vec<String>>,
}

/// What one layer of the configuration changes for an agent of protocol `exec`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecChanges {
    /// See [`ExecRules::prompt`].
    pub prompt: Option<PromptBy>,
    /// See [`ExecRules::reads`].
    pub reads: Option<Vec<ReadRule>>,
    /// The former place of [`PresetChanges::recognises`].
    pub recognises: Option<Recognises>,
}

/// What an agent's name stands for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Preset {
    /// Starts the agent without a terminal; `None` if each session names its own command.
    pub command: Option<Vec<String>>,
    /// Starts the agent without a terminal on an existing vendor session; falls back to `command`.
    pub resume: Option<Vec<String>>,
    /// Starts the vendor's own terminal program.
    pub interactive: Option<Vec<String>>,
    /// Starts the terminal program on a vendor session that does not exist yet; falls back to `interactive`.
    pub interactive_new: Option<Vec<String>>,
    /// How pinfold speaks with the agent.
    pub protocol: Protocol,
    /// Where the id of the vendor session comes from.
    pub session: SessionIds,
    /// Names of variables that are taken from the caller; a `*` at the end matches any rest.
    pub env: Vec<String>,
    /// What `attach` does with the agent.
    pub attach: AttachMode,
    /// How a message is written, for protocol `line`.
    pub input: MessageFormat,
    /// When a turn is over, for protocol `line`.
    pub turns: TurnEndRule,
    /// How its output is read, for protocol `exec`.
    pub exec: ExecRules,
    /// How its exits are recognised.
    pub recognises: Recognises,
    /// What threads are opened with besides their directory, in the agent's own words, for protocol `codex`.
    pub thread: BTreeMap<String, String>,
    /// Prints its version.
    pub version: Option<Vec<String>>,
    /// The agent runs only in a terminal; `command` and `resume` start it there.
    pub pty: bool,
    /// Where the agent keeps its sessions; part of the lock of a vendor session.
    pub store: Option<VendorStore>,
    /// The file of a vendor session, below the store; a `*` matches any name. If it exists, the session is
    /// resumed.
    pub transcript: Option<String>,
    /// The file in which a process of the agent says which session it is in, below the store.
    pub id_file: Option<String>,
    /// What that file's keys mean.
    pub id_file_keys: IdFileKeys,
    /// The last line that the terminal program prints to say which session it leaves.
    pub last_line: Option<String>,
    /// The key of the vendor session in the JSON that hooks of the terminal program write into its spool.
    pub spool_key: Option<String>,
    /// What the ids of its vendor sessions look like; any other id is refused.
    pub vendor_id: VendorIdForm,
    /// The file on which the writer of a vendor session holds a flock, below the store.
    pub writer_lock: Option<String>,
    /// The vendor's own daemon, if it has one that keeps sessions.
    pub vendor_daemon: Option<VendorDaemon>,
    /// Variables for every run, unless the session sets others.
    pub set: BTreeMap<String, String>,
    /// Names of variables that no run is given, because they would tell the agent that it runs inside another
    /// agent.
    pub strip: Vec<String>,
    /// Which messages the agent would take for commands of its terminal.
    pub chat: ChatCommands,
    /// Commands of its terminal that lead to another conversation, which pinfold does not notice.
    pub unfollowed: Vec<String>,
    /// How to install the agent if its program is not found.
    pub install: Option<String>,
    /// The versions that pinfold's own tests run with.
    pub proven: Vec<String>,
}

/// How an agent of protocol `exec` gets its message, and how its output is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecRules {
    /// How it gets its message.
    pub prompt: PromptBy,
    /// How its JSON lines are read; if empty, all that it prints is the answer.
    pub reads: Vec<ReadRule>,
    /// How its errors and exits are recognised, as in [`Preset::recognises`].
    pub recognises: Recognises,
}

/// How pinfold speaks with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Lines on standard input and output.
    #[default]
    Line,
    /// One run per message.
    Exec,
    /// Claude Code's JSON lines.
    StreamJson,
    /// Codex's app server.
    Codex,
    /// The agent client protocol.
    Acp,
    /// pi's JSON lines.
    Pi,
    /// The protocol of pinfold's own tests.
    Scripted,
}

/// Where the id of a vendor session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionIds {
    /// pinfold chooses it before the first run.
    Choose,
    /// The agent reports it.
    Learn,
    /// The agent has no vendor sessions.
    #[default]
    None,
}

/// What `attach` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachMode {
    /// End the headless run and start the vendor's program.
    #[default]
    Takeover,
    /// Start the vendor's program beside the run, on the same vendor session.
    Join,
}

/// How a message is written to an agent that reads lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageFormat {
    /// The message's text, with newline and backslash escaped.
    #[default]
    Line,
    /// `{"id","text","try"}`.
    Json,
}

/// When a turn of an agent that reads lines is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEndRule {
    /// When the line was written to its standard input.
    #[default]
    Line,
    /// When it prints `PINFOLD_DONE`.
    Done,
}

/// How an agent that runs once per message gets the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptBy {
    /// Among its arguments, at `{prompt}`.
    #[default]
    Argv,
    /// On its standard input, which is closed after it.
    Stdin,
}

impl PresetChanges {
    /// Parses the table of a preset.
    ///
    /// # Errors
    /// It is not TOML, or has keys or values that a preset cannot have.
    pub fn from_toml(text: &str) -> Result<PresetChanges, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns these changes with others applied on top.
    #[must_use]
    pub fn changed(self, above: &PresetChanges) -> PresetChanges {
        let recognises = above.recognises().or(self.recognises()).cloned();
        PresetChanges {
            command: above.command.clone().or(self.command),
            resume: above.resume.clone().or(self.resume),
            interactive: above.interactive.clone().or(self.interactive),
            interactive_new: above.interactive_new.clone().or(self.interactive_new),
            protocol: above.protocol.or(self.protocol),
            session: above.session.or(self.session),
            env: above.env.clone().or(self.env),
            attach: above.attach.or(self.attach),
            input: above.input.or(self.input),
            turns: above.turns.or(self.turns),
            recognises,
            exec: self.exec.changed(&above.exec),
            thread: above.thread.clone().or(self.thread),
            version: above.version.clone().or(self.version),
            pty: above.pty.or(self.pty),
            store: above.store.clone().or(self.store),
            transcript: above.transcript.clone().or(self.transcript),
            id_file: above.id_file.clone().or(self.id_file),
            id_file_keys: above.id_file_keys.clone().or(self.id_file_keys),
            last_line: above.last_line.clone().or(self.last_line),
            spool_key: above.spool_key.clone().or(self.spool_key),
            vendor_id: above.vendor_id.or(self.vendor_id),
            writer_lock: above.writer_lock.clone().or(self.writer_lock),
            vendor_daemon: above.vendor_daemon.clone().or(self.vendor_daemon),
            set: above.set.clone().or(self.set),
            strip: above.strip.clone().or(self.strip),
            chat_marks: above.chat_marks.clone().or(self.chat_marks),
            chat_commands: above.chat_commands.clone().or(self.chat_commands),
            unfollowed: above.unfollowed.clone().or(self.unfollowed),
            install: above.install.clone().or(self.install),
            proven: above.proven.clone().or(self.proven),
        }
    }

    /// Returns how exits are recognised, in whichever place it is.
    fn recognises(&self) -> Option<&Recognises> {
        self.recognises.as_ref().or(self.exec.recognises.as_ref())
    }

    /// Returns the preset that these changes make.
    #[must_use]
    pub fn preset(self) -> Preset {
        let recognises = self.recognises().cloned().unwrap_or_default();
        Preset {
            command: self.command,
            resume: self.resume,
            interactive: self.interactive,
            interactive_new: self.interactive_new,
            protocol: self.protocol.unwrap_or_default(),
            session: self.session.unwrap_or_default(),
            env: self.env.unwrap_or_default(),
            attach: self.attach.unwrap_or_default(),
            input: self.input.unwrap_or_default(),
            turns: self.turns.unwrap_or_default(),
            exec: ExecRules {
                prompt: self.exec.prompt.unwrap_or_default(),
                reads: self.exec.reads.unwrap_or_default(),
                recognises: recognises.clone(),
            },
            recognises,
            thread: self.thread.unwrap_or_default(),
            version: self.version,
            pty: self.pty.unwrap_or_default(),
            store: self.store,
            transcript: self.transcript,
            id_file: self.id_file,
            id_file_keys: self.id_file_keys.unwrap_or_default(),
            last_line: self.last_line,
            spool_key: self.spool_key,
            vendor_id: self.vendor_id.unwrap_or_default(),
            writer_lock: self.writer_lock,
            vendor_daemon: self.vendor_daemon,
            set: self.set.unwrap_or_default(),
            strip: self.strip.unwrap_or_default(),
            chat: ChatCommands {
                marks: self.chat_marks.unwrap_or_default(),
                commands: self.chat_commands.unwrap_or_default(),
            },
            unfollowed: self.unfollowed.unwrap_or_default(),
            install: self.install,
            proven: self.proven.unwrap_or_default(),
        }
    }
}

impl ExecChanges {
    fn changed(self, above: &ExecChanges) -> ExecChanges {
        ExecChanges {
            prompt: above.prompt.or(self.prompt),
            reads: above.reads.clone().or(self.reads),
            recognises: None,
        }
    }
}

impl Preset {
    /// Returns whether a variable is taken from the caller.
    #[must_use]
    pub fn takes(&self, variable: &str) -> bool {
        named(&self.env, variable) && !self.strips(variable)
    }

    /// Returns whether a variable is withheld from the agent, wherever it was set.
    #[must_use]
    pub fn strips(&self, variable: &str) -> bool {
        named(&self.strip, variable)
    }
}

/// Returns whether a name is in the list; a `*` at the end of an entry matches any rest.
fn named(names: &[String], name: &str) -> bool {
    names.iter().any(|known| match known.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(text: &str) -> PresetChanges {
        PresetChanges::from_toml(text).unwrap()
    }

    #[test]
    fn a_layer_changes_the_keys_that_it_names_and_no_others() {
        let shipped = changes(
            "command = ['old', '{dir}']\nprotocol = 'acp'\nsession = 'learn'\n[exec]\nprompt = 'stdin'\n",
        );
        let own = changes("command = ['new']\n[exec]\nrecognises.login = ['Not logged in']\n");
        let both = shipped.changed(&own).preset();
        assert_eq!(both.command.unwrap(), ["new"]);
        assert_eq!((both.protocol, both.session), (Protocol::Acp, SessionIds::Learn));
        assert_eq!((both.exec.prompt, both.exec.recognises.login.len()), (PromptBy::Stdin, 1));
    }

    #[test]
    fn the_former_place_of_recognises_counts_like_the_present_one() {
        let places = ["recognises.busy = ['above']", "[exec]\nrecognises.busy = ['above']"];
        for (shipped, own) in places.iter().flat_map(|one| places.iter().map(move |other| (one, other))) {
            let both = changes(&shipped.replace("above", "below")).changed(&changes(own)).preset();
            assert_eq!(both.recognises.busy, ["above"], "{shipped} and {own}");
            assert_eq!(both.exec.recognises, both.recognises);
        }
    }

    #[test]
    fn keys_and_values_that_are_not_known_are_errors() {
        for text in [
            "comand = ['x']",
            "protocol = 'telepathy'",
            "turns = 3",
            "[exec]\nprompt = 'mail'",
            "[exec]\nx = 1",
        ] {
            assert!(PresetChanges::from_toml(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_word_of_a_protocol_is_known() {
        for word in ["line", "exec", "stream-json", "codex", "acp", "pi", "scripted"] {
            assert!(PresetChanges::from_toml(&format!("protocol = '{word}'")).is_ok(), "{word}");
        }
    }

    #[test]
    fn variables_are_taken_by_name_or_by_how_they_begin() {
        let preset = changes("env = ['CODEX_HOME', 'ANTHROPIC_*']").preset();
        let rows =
            [("CODEX_HOME", true), ("CODEX_HOMES", false), ("ANTHROPIC_API_KEY", true), ("PATH", false)];
        for (name, taken) in rows {
            assert_eq!(preset.takes(name), taken, "{name}");
        }
        let stripped = changes("env = ['CLAUDE*']\nstrip = ['CLAUDECODE']").preset();
        assert!(stripped.takes("CLAUDE_CONFIG_DIR") && !stripped.takes("CLAUDECODE"));
    }
}
