//! `[agents.NAME]`: a preset of the user's own, or changes to one that pinfold ships.

use super::policy::Changes;
use super::reading::nearest;
use super::value::{Flag, Names, Quoted, TextList, TextVisitor, Word, WordTable, wrong};
use crate::caller::{Act, MAY};
use crate::define::preset::{
    ATTACHES, AttachMode, ExecChanges, INPUTS, IdFileKeys, MessageFormat, PLACEHOLDERS, PROTOCOLS,
    PresetChanges, Protocol, Recognises, SESSION_IDS, SessionIds, TURNS, TurnEndRule, VendorDaemon,
    VendorStore,
};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

/// What the file says about one agent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AgentTable {
    command: Option<Command>,
    resume: Option<Command>,
    interactive: Option<Command>,
    interactive_new: Option<Command>,
    version: Option<Command>,
    protocol: Option<Word<Protocol>>,
    session: Option<Word<SessionIds>>,
    attach: Option<Word<AttachMode>>,
    input: Option<Word<MessageFormat>>,
    turns: Option<Word<TurnEndRule>>,
    pty: Option<Flag>,
    /// Variables that are taken from the caller, and those that are kept from runs.
    env: Option<Names>,
    strip: Option<Names>,
    /// Variables set for every run.
    set: Option<BTreeMap<String, Quoted>>,
    /// The parameters with which its threads are opened.
    thread: Option<BTreeMap<String, Quoted>>,
    /// Where it stores its sessions.
    store: Option<VendorStore>,
    transcript: Option<Quoted>,
    id_file: Option<Quoted>,
    /// The meaning of the keys in that file.
    id_file_keys: Option<IdFileKeys>,
    last_line: Option<Quoted>,
    spool_key: Option<Quoted>,
    writer_lock: Option<Quoted>,
    /// The vendor's own daemon.
    vendor_daemon: Option<VendorDaemon>,
    /// Which messages are commands of its terminal.
    chat_marks: Option<TextList>,
    chat_commands: Option<TextList>,
    unfollowed: Option<TextList>,
    install: Option<Quoted>,
    /// How the output of an agent of protocol `exec` is read.
    exec: Option<ExecChanges>,
    /// How its exits are recognised.
    recognises: Option<Recognises>,
    /// What its runs may do as if they were a person.
    may: Option<May>,
    pub(super) policy: Changes,
}

impl AgentTable {
    /// The changes to the preset.
    pub(super) fn preset(&self) -> PresetChanges {
        let words = |command: &Option<Command>| command.as_ref().map(|command| command.0.clone());
        let names = |names: &Option<Names>| names.as_ref().map(|names| names.0.clone());
        let texts = |texts: &Option<TextList>| texts.as_ref().map(|texts| texts.0.clone());
        let text = |text: &Option<Quoted>| text.as_ref().map(|text| text.0.clone());
        let table = |table: &Option<BTreeMap<String, Quoted>>| {
            let rows = table.as_ref()?.iter();
            Some(rows.map(|(name, value)| (name.clone(), value.0.clone())).collect())
        };
        PresetChanges {
            command: words(&self.command),
            resume: words(&self.resume),
            interactive: words(&self.interactive),
            interactive_new: words(&self.interactive_new),
            version: words(&self.version),
            protocol: self.protocol.map(|word| word.0),
            session: self.session.map(|word| word.0),
            attach: self.attach.map(|word| word.0),
            input: self.input.map(|word| word.0),
            turns: self.turns.map(|word| word.0),
            pty: self.pty.map(|flag| flag.0),
            env: names(&self.env),
            strip: names(&self.strip),
            set: table(&self.set),
            thread: table(&self.thread),
            store: self.store.clone(),
            transcript: text(&self.transcript),
            id_file: text(&self.id_file),
            id_file_keys: self.id_file_keys.clone(),
            last_line: text(&self.last_line),
            spool_key: text(&self.spool_key),
            writer_lock: text(&self.writer_lock),
            vendor_daemon: self.vendor_daemon.clone(),
            chat_marks: texts(&self.chat_marks),
            chat_commands: texts(&self.chat_commands),
            unfollowed: texts(&self.unfollowed),
            install: text(&self.install),
            exec: self.exec.clone().unwrap_or_default(),
            recognises: self.recognises.clone(),
            ..PresetChanges::default()
        }
    }

    /// Whether it changes an agent that pinfold ships. With a command and no protocol it is the user's own,
    /// whatever its name.
    pub(super) fn changes_shipped(&self) -> bool {
        self.command.is_none() || self.protocol.is_some()
    }

    /// What its runs may do, if the file says so.
    pub(super) fn may(&self) -> Option<&[Act]> {
        self.may.as_ref().map(|may| may.0.as_slice())
    }
}

impl WordTable for Protocol {
    const WORDS: &'static [(&'static str, Protocol)] = &PROTOCOLS;
}

impl WordTable for AttachMode {
    const WORDS: &'static [(&'static str, AttachMode)] = &ATTACHES;
}

impl WordTable for MessageFormat {
    const WORDS: &'static [(&'static str, MessageFormat)] = &INPUTS;
}

impl WordTable for TurnEndRule {
    const WORDS: &'static [(&'static str, TurnEndRule)] = &TURNS;
}

impl WordTable for SessionIds {
    const WORDS: &'static [(&'static str, SessionIds)] = &SESSION_IDS;
}

/// Reads `[agents]`. Agent `command` runs what each session names: it has no command of its own.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, AgentTable>, D::Error> {
    struct Reading;
    impl<'de> Visitor<'de> for Reading {
        type Value = BTreeMap<String, AgentTable>;

        fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("is a table of agents")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut rows: A) -> Result<Self::Value, A::Error> {
            let mut agents = BTreeMap::new();
            while let Some(name) = rows.next_key::<String>()? {
                let agent = rows.next_value_seed(Of(&name))?;
                agents.insert(name, agent);
            }
            Ok(agents)
        }
    }
    from.deserialize_map(Reading)
}

/// Reads the agent of this name.
struct Of<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Of<'_> {
    type Value = AgentTable;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<AgentTable, D::Error> {
        let agent = AgentTable::deserialize(from)?;
        if self.0 == crate::define::preset::COMMAND && agent.preset() != PresetChanges::default() {
            let problem =
                "agent `command` runs what each session names; only its policy and `may` can be set here";
            return Err(D::Error::custom(problem));
        }
        Ok(agent)
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq)]
struct Command(Vec<String>);

const LIST: &str = "is a list of words, as in [\"prog\", \"--flag\", \"{dir}\"]";

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Command, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Command;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(LIST)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Command, A::Error> {
                let mut words = Vec::new();
                while let Some(Argument(word)) = list.next_element()? {
                    words.push(word);
                }
                if words.first().is_none_or(String::is_empty) {
                    return Err(wrong("", "names no program"));
                }
                Ok(Command(words))
            }
        }
        from.deserialize_any(Reading)
    }
}

/// An argument of a command.
struct Argument(String);

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Argument, D::Error> {
        let text = from.deserialize_any(TextVisitor(LIST))?;
        if let Some(meant) = mistyped(&text) {
            let problem = format!("has an unknown placeholder in `{text}`; the nearest one is `{meant}`");
            return Err(wrong(&text, &problem));
        }
        Ok(Argument(text))
    }
}

/// Programs may use braces (`awk '{print}'`): only a near miss of one of our own words is an error.
fn mistyped(text: &str) -> Option<&'static str> {
    let braced = text.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(word, _)| word));
    braced.map(|word| format!("{{{word}}}")).find_map(|word| {
        let meant = nearest(&word, &PLACEHOLDERS);
        let off = strsim::levenshtein(&word, meant);
        (off > 0 && off * 4 <= meant.len()).then_some(meant)
    })
}

/// What runs may do as if they were a person.
#[derive(Debug, Clone, PartialEq)]
struct May(Vec<Act>);

/// One of these acts.
#[derive(Clone, Copy)]
struct Allowed(Act);

fn what_may_be(f: &mut Formatter<'_>) -> fmt::Result {
    let known: Vec<&str> = MAY.iter().map(|(word, _)| *word).collect();
    write!(f, "is a list of these: {}", known.join(", "))
}

impl<'de> Deserialize<'de> for May {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<May, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = May;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                what_may_be(f)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<May, A::Error> {
                let mut acts = Vec::new();
                while let Some(Allowed(act)) = list.next_element()? {
                    acts.push(act);
                }
                Ok(May(acts))
            }
        }
        from.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for Allowed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Allowed, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = Allowed;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                what_may_be(f)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Allowed, E> {
                let known = crate::define::preset::of_word(&MAY, word).map(Allowed);
                known.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(word), &self))
            }
        }
        from.deserialize_any(Reading)
    }
}
