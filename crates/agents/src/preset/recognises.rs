//! How the exits of an agent are recognised: exit codes, and parts of what it prints, as the agent writes them.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// What an agent prints or exits with when it cannot work. Each text is a part of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recognises {
    /// Another process holds what it needs.
    pub busy: Vec<String>,
    /// No vendor session has this id.
    pub unknown_session: Vec<String>,
    /// You have to log in.
    pub login: Vec<String>,
    /// A usage limit.
    pub limit: Vec<String>,
    /// The meaning of exit codes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<ExitCode, Meaning>,
    /// The file in which the process that holds what the agent needs writes its pid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_pid_file: Option<String>,
}

/// The meaning of a text or an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Another process holds what it needs.
    Busy,
    /// No vendor session has this id.
    UnknownSession,
    /// You have to log in.
    Login,
    /// A usage limit.
    Limit,
}

/// An exit code that has a meaning; 0 has none but success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExitCode(u8);

impl Recognises {
    /// Returns the meaning of a line.
    #[must_use]
    pub fn of_text(&self, text: &str) -> Option<Meaning> {
        let Recognises { busy, unknown_session, login, limit, codes: _, busy_pid_file: _ } = self;
        let meanings = [
            (busy, Meaning::Busy),
            (unknown_session, Meaning::UnknownSession),
            (login, Meaning::Login),
            (limit, Meaning::Limit),
        ];
        let has = |parts: &[String]| parts.iter().any(|part| text.contains(part.as_str()));
        meanings.into_iter().find(|(parts, _)| has(parts)).map(|(_, meaning)| meaning)
    }

    /// Returns the meaning of an exit code.
    #[must_use]
    pub fn of_code(&self, code: i32) -> Option<Meaning> {
        let code = ExitCode(u8::try_from(code).ok()?);
        self.codes.get(&code).copied()
    }

    /// Returns the meaning of an exit with these last lines, the newest last, and the line that shows it. Success
    /// has no other meaning, whatever was printed.
    #[must_use]
    pub fn of_exit<'l>(&self, code: i32, lines: &'l [String]) -> Option<(Meaning, Option<&'l str>)> {
        if code == 0 {
            return None;
        }
        let said = lines.iter().rev().find_map(|line| Some((self.of_text(line)?, line.as_str())));
        match (self.of_code(code), said) {
            (Some(meaning), said) => Some((meaning, said.map(|(_, line)| line))),
            (None, Some((meaning, line))) => Some((meaning, Some(line))),
            (None, None) => None,
        }
    }
}

/// Returns the pid that a line names: `pid 4711`, `PID=4711`, `held by process 4711`.
#[must_use]
pub fn pid_in(line: &str) -> Option<u32> {
    let words = line.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let named = |word: &str| ["pid", "process"].iter().any(|name| word.eq_ignore_ascii_case(name));
    let pairs = words.windows(2).filter(|pair| named(pair[0]));
    pairs.filter_map(|pair| pair[1].parse().ok()).find(|pid| *pid > 0)
}

impl Serialize for ExitCode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for ExitCode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ExitCode, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = ExitCode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an exit code from 1 to 255")
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<ExitCode, E> {
                let code = key.parse().ok().filter(|code| *code > 0).map(ExitCode);
                code.ok_or_else(|| E::invalid_value(Unexpected::Str(key), &self))
            }
        }
        from.deserialize_str(Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Recognises {
        toml::from_str(
            "busy = ['session lock busy']\nlogin = ['not logged in']\ncodes = { 3 = 'busy', 4 = 'limit' }\n\
             busy_pid_file = '{dir}/.lock'",
        )
        .unwrap()
    }

    #[test]
    fn an_exit_is_recognised_by_its_code_or_its_last_lines_and_success_never_is() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let busy = "error: session lock busy (pid 7)";
        let rows = [
            (1, busy, Some((Meaning::Busy, Some(busy)))),
            (1, "error: session lock busy (pid 7)\nbye", Some((Meaning::Busy, Some(busy)))),
            (0, busy, None),
            (1, "boom", None),
            (3, "boom", Some((Meaning::Busy, None))),
            (3, busy, Some((Meaning::Busy, Some(busy)))),
            (4, busy, Some((Meaning::Limit, Some(busy)))),
            (1, "you are not logged in", Some((Meaning::Login, Some("you are not logged in")))),
            (1, "", None),
            (-1, "", None),
        ];
        for (code, text, expected) in rows {
            let lines = lines(text);
            assert_eq!(rules().of_exit(code, &lines), expected, "{code} {text:?}");
        }
    }

    #[test]
    fn a_line_may_name_the_pid_of_the_holder() {
        let rows = [
            ("session lock busy (pid 4711)", Some(4711)),
            ("PID=4711 has it", Some(4711)),
            ("locked by pid: 4711.", Some(4711)),
            ("held by process 4711", Some(4711)),
            ("another process has it, pid 4711", Some(4711)),
            ("rapid 4711", None),
            ("error 4711", None),
            ("pid 0", None),
            ("pid 99999999999", None),
            ("pid", None),
        ];
        for (line, pid) in rows {
            assert_eq!(pid_in(line), pid, "{line}");
        }
    }

    #[test]
    fn a_table_is_read_and_stored_and_odd_codes_are_errors() {
        let stored = serde_json::to_string(&rules()).unwrap();
        assert_eq!(serde_json::from_str::<Recognises>(&stored).unwrap(), rules());
        let before = serde_json::to_string(&Recognises::default()).unwrap();
        assert!(!before.contains("codes"), "as earlier versions wrote it: {before}");
        for text in ["codes = { 0 = 'busy' }", "codes = { 300 = 'busy' }", "codes = { x = 'busy' }"] {
            assert!(toml::from_str::<Recognises>(text).is_err(), "{text}");
        }
        assert!(toml::from_str::<Recognises>("codes = { 3 = 'bussy' }").is_err());
    }
}
