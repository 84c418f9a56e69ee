//! A file that declares sessions, as `apply` reads it: `[sessions.NAME]` with the fields of `POST
//! /v1/sessions`.
//!
//! It is read like `config.toml`: an error names its line and the nearest known key.

use super::config::ConfigError;
use super::config::declared::{Flag, MoneyText, Quoted, SizeText, SpanText, Texts, parse};
use pinfold_api::Name;
use pinfold_api::request::{NewSession, SessionWorktree};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The sessions that a file declares, by name.
///
/// # Errors
/// The first line that cannot be used, and why.
pub fn read(text: &str) -> Result<Vec<DeclaredSession>, ConfigError> {
    let file: File = parse(text)?;
    Ok(file.sessions.into_iter().map(|(name, session)| session.named(name)).collect())
}

/// One session of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredSession {
    /// The request to create it; what the file does not set is `None`.
    pub request: NewSession,
    /// Variables that are only named: their values already exist, or are the caller's.
    pub env_names: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    sessions: BTreeMap<Name, Session>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Session {
    agent: Option<Quoted>,
    vendor_session: Option<Quoted>,
    dir: Option<Quoted>,
    mode: Option<Mode>,
    memory: Option<SizeText>,
    idle: Option<SpanText>,
    stop_grace: Option<SpanText>,
    budget: Option<MoneyText>,
    turn_time: Option<SpanText>,
    pty: Option<Flag>,
    input: Option<Input>,
    turns: Option<Turns>,
    contended_if: Option<Quoted>,
    parent: Option<Quoted>,
    tags: Option<Texts>,
    env: Option<Env>,
    dir_lock: Option<Flag>,
    beside: Option<Flag>,
    force: Option<Flag>,
    command: Option<Texts>,
    worktree: Option<Worktree>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Worktree {
    path: Quoted,
    repository: Quoted,
    gitdir: Quoted,
    commondir: Quoted,
    created: Flag,
}

/// Words of a field, as serde reads them: an error lists the right ones.
macro_rules! words {
    ($($Name:ident { $($Variant:ident = $word:literal,)+ })+) => {$(
        #[derive(Debug, Clone, Copy, Deserialize)]
        enum $Name { $(#[serde(rename = $word)] $Variant,)+ }

        impl From<$Name> for String {
            fn from(word: $Name) -> String {
                match word { $($Name::$Variant => $word,)+ }.to_owned()
            }
        }
    )+};
}

words! {
    Mode { OnDemand = "on-demand", Always = "always", Once = "once", }
    Input { Line = "line", Json = "json", }
    Turns { Line = "line", Done = "done", }
}

impl Session {
    fn named(self, name: Name) -> DeclaredSession {
        let (env, env_names) = match self.env {
            Some(Env::Values(values)) => (Some(values), Vec::new()),
            Some(Env::Names(names)) => (None, names),
            None => (None, Vec::new()),
        };
        let request = NewSession {
            name: name.into(),
            agent: self.agent.map(|text| text.0),
            vendor_session: self.vendor_session.map(|text| text.0),
            dir: self.dir.map(|text| text.0),
            mode: self.mode.map(String::from),
            memory: self.memory.map(|text| text.0),
            idle: self.idle.map(|text| text.0),
            stop_grace: self.stop_grace.map(|text| text.0),
            budget: self.budget.map(|text| text.0),
            turn_time: self.turn_time.map(|text| text.0),
            pty: self.pty.map(bool::from),
            input: self.input.map(String::from),
            turns: self.turns.map(String::from),
            contended_if: self.contended_if.map(|text| text.0),
            parent: self.parent.map(|text| text.0),
            tags: self.tags.map(|texts| texts.0),
            env,
            dir_lock: self.dir_lock.map(bool::from),
            beside: self.beside.map(bool::from),
            force: self.force.map(bool::from),
            command: self.command.map(|texts| texts.0),
            worktree: self.worktree.map(SessionWorktree::from),
            ..NewSession::default()
        };
        DeclaredSession { request, env_names }
    }
}

impl From<Worktree> for SessionWorktree {
    fn from(told: Worktree) -> SessionWorktree {
        SessionWorktree {
            path: told.path.0,
            repository: told.repository.0,
            gitdir: told.gitdir.0,
            commondir: told.commondir.0,
            created: bool::from(told.created),
        }
    }
}

/// `["NAME"]` names variables, `{ NAME = "value" }` sets them.
#[derive(Debug)]
enum Env {
    Names(Vec<String>),
    Values(BTreeMap<String, String>),
}

impl<'de> Deserialize<'de> for Env {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Env, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Env;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("is a list of names, [\"API_KEY\"], or a table of values, { API_KEY = \"...\" }")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Env, A::Error> {
                let mut names = Vec::new();
                while let Some(Quoted(name)) = list.next_element()? {
                    names.push(name);
                }
                Ok(Env::Names(names))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Env, A::Error> {
                let mut values = BTreeMap::new();
                while let Some((name, Quoted(value))) = table.next_entry::<String, Quoted>()? {
                    values.insert(name, value);
                }
                Ok(Env::Values(values))
            }
        }
        from.deserialize_any(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_field_by_field() {
        let text = "[sessions.api]\ndir = \"/src\"\nmode = \"always\"\nmemory = \"2G\"\ntags = [\"a\"]\n\
                    env = [\"KEY\"]\ncommand = [\"sleep\", \"1\"]\n\n[sessions.web.env]\nA = \"1\"\n";
        let [api, web] = &read(text).unwrap()[..] else { panic!("two sessions") };
        assert_eq!((api.request.name.as_str(), api.request.mode.as_deref()), ("api", Some("always")));
        assert_eq!((&api.env_names[..], api.request.env.as_ref()), (&["KEY".to_owned()][..], None));
        assert_eq!(api.request.command.as_deref(), Some(&["sleep".to_owned(), "1".to_owned()][..]));
        assert_eq!(web.request.env.as_ref().map(|env| env["A"].as_str()), Some("1"));
        assert_eq!(web.request.mode, None, "what it does not say is nothing");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let rows = [
            ("[sessions.api]\nmod = \"once\"\n", 2, "there is no key `mod`; the nearest one is `mode`"),
            ("[sessions.api]\nmode = \"twice\"\n", 2, "`mode` is `on-demand` or `always` or `once`"),
            ("[sessions.api]\n\nidle = \"5x\"\n", 3, "`idle` is a duration"),
            ("[sessions.api]\nmemory = 5\n", 2, "`memory` is a size in quotes"),
            ("[sessions.api]\npty = \"yes\"\n", 2, "`pty` is true or false"),
            ("[sessions.api]\nenv = 7\n", 2, "`env` is a list of names"),
            ("[sessions.api]\ncommand = \"sleep 1\"\n", 2, "`command` is a list of texts"),
            ("[sesions.api]\n", 1, "there is no key `sesions`; the nearest one is `sessions`"),
            ("[sessions.\"a b\"]\n", 1, "`a b` is not a name"),
            ("[sessions.api]\nname = \"x\"\n", 2, "there is no key `name`"),
            ("[sessions.api\n", 1, ""),
        ];
        for (text, line, problem) in rows {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
    }
}
