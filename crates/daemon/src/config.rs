//! `config.toml`: numbers for all, for an agent, for a session. What cannot be read is an error with its line.

use pinfold_api::units;
use pinfold_core::Policy;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// Everything that the file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    all: Changes,
    agents: BTreeMap<String, Changes>,
    sessions: BTreeMap<String, Changes>,
}

/// The numbers of one session: the core's policy, and what only the daemon goes by.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What the core decides by.
    pub policy: Policy,
    /// How often memory is read.
    pub memory_sample: Duration,
    /// What is said to agents that ask for permission.
    pub permissions: Permissions,
    /// How long an HTTP hold may last; zero is for ever.
    pub hold_limit: Duration,
}

/// What is said to agents that ask for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// A person is asked.
    Ask,
    /// Yes.
    Allow,
    /// No.
    Deny,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            policy: Policy::default(),
            memory_sample: Duration::from_secs(5),
            permissions: Permissions::Ask,
            hold_limit: Duration::ZERO,
        }
    }
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

/// Values by the name of their key, as the file has them.
type Changes = BTreeMap<&'static str, Value>;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    Count(u32),
    Span(Duration),
    Part(f64),
    Flag(bool),
    Word(Permissions),
}

/// How the value of a key is written.
#[derive(Clone, Copy)]
enum Kind {
    Count(fn(&mut Settings) -> &mut u32),
    Span(fn(&mut Settings) -> &mut Duration),
    Part(fn(&mut Settings) -> &mut f64),
    Flag(fn(&mut Settings) -> &mut bool),
    Word(fn(&mut Settings) -> &mut Permissions),
}

const KEYS: [(&str, Kind); 24] = [
    ("crash_soft_limit", Kind::Count(|s| &mut s.policy.crash_soft_limit)),
    ("crash_hard_limit", Kind::Count(|s| &mut s.policy.crash_hard_limit)),
    ("stable_after", Kind::Span(|s| &mut s.policy.stable_after)),
    ("backoff_initial", Kind::Span(|s| &mut s.policy.backoff_initial)),
    ("backoff_max", Kind::Span(|s| &mut s.policy.backoff_max)),
    ("backoff_jitter", Kind::Part(|s| &mut s.policy.backoff_jitter)),
    ("clean_limit", Kind::Count(|s| &mut s.policy.clean_limit)),
    ("clean_window", Kind::Span(|s| &mut s.policy.clean_window)),
    ("drain_limit", Kind::Count(|s| &mut s.policy.drain_limit)),
    ("drain_window", Kind::Span(|s| &mut s.policy.drain_window)),
    ("drain_backoff", Kind::Span(|s| &mut s.policy.drain_backoff)),
    ("contention_step", Kind::Span(|s| &mut s.policy.contention_step)),
    ("contention_max", Kind::Span(|s| &mut s.policy.contention_max)),
    ("contention_limit", Kind::Count(|s| &mut s.policy.contention_limit)),
    ("idle_after", Kind::Span(|s| &mut s.policy.idle_after)),
    ("stop_grace", Kind::Span(|s| &mut s.policy.stop_grace)),
    ("takeover_deadline", Kind::Span(|s| &mut s.policy.takeover_deadline)),
    ("message_tries", Kind::Count(|s| &mut s.policy.message_tries)),
    ("memory_warn", Kind::Part(|s| &mut s.policy.memory_warn)),
    ("memory_sample", Kind::Span(|s| &mut s.memory_sample)),
    ("watchdog", Kind::Span(|s| &mut s.policy.watchdog)),
    ("permissions", Kind::Word(|s| &mut s.permissions)),
    ("hold_limit", Kind::Span(|s| &mut s.hold_limit)),
    ("limit_resume", Kind::Flag(|s| &mut s.policy.limit_resume)),
];

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is there and cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Something in it is wrong.
    #[error("{}", path.display())]
    Wrong {
        /// Which.
        path: PathBuf,
        /// What and where.
        #[source]
        source: ConfigError,
    },
}

/// Loads the configuration; a file that does not exist says nothing.
///
/// # Errors
/// The file cannot be read, or something in it is wrong.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Config::parse(&text).map_err(|source| LoadError::Wrong { path: path.to_owned(), source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Config::default()),
        Err(source) => Err(LoadError::Unreadable { path: path.to_owned(), source }),
    }
}

impl Config {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first line that cannot be used, and why.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let root = DeTable::parse(text).map_err(|error| broken(text, &error))?;
        let reading = Reading { text };
        let mut config = Config::default();
        for (key, value) in root.get_ref() {
            match key.get_ref().as_ref() {
                "policy" => config.all = reading.policy(value.get_ref(), key.span())?,
                "agents" => config.agents = reading.named(value.get_ref(), key.span())?,
                "sessions" => config.sessions = reading.named(value.get_ref(), key.span())?,
                other => return Err(reading.unknown(other, &["policy", "agents", "sessions"], key.span())),
            }
        }
        Ok(config)
    }

    /// The numbers of a session: those for all, then its agent's, then its own.
    #[must_use]
    pub fn settings(&self, agent: &str, session: &str) -> Settings {
        let mut settings = Settings::default();
        let layers = [Some(&self.all), self.agents.get(agent), self.sessions.get(session)];
        for (key, value) in layers.into_iter().flatten().flatten() {
            if let Some((_, kind)) = KEYS.iter().find(|(name, _)| name == key) {
                set(&mut settings, *kind, *value);
            }
        }
        settings
    }
}

fn set(settings: &mut Settings, kind: Kind, value: Value) {
    match (kind, value) {
        (Kind::Count(field), Value::Count(count)) => *field(settings) = count,
        (Kind::Span(field), Value::Span(span)) => *field(settings) = span,
        (Kind::Part(field), Value::Part(part)) => *field(settings) = part,
        (Kind::Flag(field), Value::Flag(flag)) => *field(settings) = flag,
        (Kind::Word(field), Value::Word(word)) => *field(settings) = word,
        // A value is made by the kind of its key, so the two always agree.
        (Kind::Count(_) | Kind::Span(_) | Kind::Part(_) | Kind::Flag(_) | Kind::Word(_), _) => {}
    }
}

struct Reading<'a> {
    text: &'a str,
}

impl Reading<'_> {
    fn error(&self, span: Range<usize>, problem: String) -> ConfigError {
        ConfigError { line: line_of(self.text, span.start), problem }
    }

    fn unknown(&self, key: &str, known: &[&str], span: Range<usize>) -> ConfigError {
        let nearest = known.iter().min_by_key(|name| distance(key, name)).copied().unwrap_or_default();
        self.error(span, format!("there is no key `{key}`; the nearest one is `{nearest}`"))
    }

    /// `[agents.NAME.policy]` and `[sessions.NAME.policy]`.
    fn named(
        &self,
        value: &DeValue<'_>,
        span: Range<usize>,
    ) -> Result<BTreeMap<String, Changes>, ConfigError> {
        let mut named = BTreeMap::new();
        for (name, value) in self.table(value, span)? {
            let mut changes = Changes::new();
            for (key, value) in self.table(value.get_ref(), name.span())? {
                match key.get_ref().as_ref() {
                    "policy" => changes = self.policy(value.get_ref(), key.span())?,
                    other => return Err(self.unknown(other, &["policy"], key.span())),
                }
            }
            named.insert(name.get_ref().to_string(), changes);
        }
        Ok(named)
    }

    fn policy(&self, value: &DeValue<'_>, span: Range<usize>) -> Result<Changes, ConfigError> {
        let mut changes = Changes::new();
        for (key, value) in self.table(value, span)? {
            let Some((name, kind)) = KEYS.iter().find(|(name, _)| *name == key.get_ref().as_ref()) else {
                return Err(self.unknown(key.get_ref(), &KEYS.map(|(name, _)| name), key.span()));
            };
            let read = read_value(*kind, value.get_ref());
            let problem = |problem| self.error(value.span(), format!("`{name}` {problem}"));
            changes.insert(name, read.map_err(problem)?);
        }
        Ok(changes)
    }

    fn table<'t, 'i>(
        &self,
        value: &'t DeValue<'i>,
        span: Range<usize>,
    ) -> Result<&'t DeTable<'i>, ConfigError> {
        value.as_table().ok_or_else(|| self.error(span, "a table is expected here".into()))
    }
}

fn read_value(kind: Kind, value: &DeValue<'_>) -> Result<Value, String> {
    match kind {
        Kind::Count(_) => count(value).map(Value::Count),
        Kind::Span(_) => span(value).map(Value::Span),
        Kind::Part(_) => part(value).map(Value::Part),
        Kind::Flag(_) => value.as_bool().map(Value::Flag).ok_or_else(|| "is true or false".into()),
        Kind::Word(_) => word(value).map(Value::Word),
    }
}

fn count(value: &DeValue<'_>) -> Result<u32, String> {
    let number = value.as_integer().and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
    number.ok_or_else(|| "is a number, 0 or more".into())
}

fn span(value: &DeValue<'_>) -> Result<Duration, String> {
    let text =
        value.as_str().ok_or("is a duration in quotes, as in \"250ms\", \"10s\", \"5m\", \"2h\", \"7d\"")?;
    units::duration(text).map_err(|error| format!("is a duration: {error}"))
}

fn part(value: &DeValue<'_>) -> Result<f64, String> {
    let text = value
        .as_float()
        .map(toml::de::DeFloat::as_str)
        .or(value.as_integer().map(toml::de::DeInteger::as_str));
    let part = text.and_then(|text| text.parse::<f64>().ok()).filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "is a part of one, from 0.0 to 1.0".into())
}

fn word(value: &DeValue<'_>) -> Result<Permissions, String> {
    match value.as_str() {
        Some("ask") => Ok(Permissions::Ask),
        Some("allow") => Ok(Permissions::Allow),
        Some("deny") => Ok(Permissions::Deny),
        Some(_) | None => Err("is \"ask\", \"allow\" or \"deny\"".into()),
    }
}

fn broken(text: &str, error: &toml::de::Error) -> ConfigError {
    let line = error.span().map_or(1, |span| line_of(text, span.start));
    ConfigError { line, problem: error.message().trim().to_owned() }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

/// How many letters have to be changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, wanted) in other.iter().enumerate() {
            let same = diagonal + usize::from(letter != *wanted);
            diagonal = row[column + 1];
            row[column + 1] = same.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
# for all
[policy]
crash_hard_limit = 5
backoff_initial = "250ms"
backoff_jitter = 0

[agents.claude.policy]
crash_hard_limit = 7
permissions = "deny"

[sessions.api.policy]
crash_hard_limit = 0
idle_after = "0s"
"#;

    #[test]
    fn a_session_goes_by_its_own_numbers_then_its_agents_then_those_for_all() {
        let config = Config::parse(EXAMPLE).unwrap();
        let limit = |agent, session| config.settings(agent, session).policy.crash_hard_limit;
        assert_eq!(limit("command", "web"), 5);
        assert_eq!(limit("claude", "web"), 7);
        assert_eq!(limit("claude", "api"), 0);
        let api = config.settings("claude", "api");
        assert_eq!(
            (api.policy.idle_after, api.policy.backoff_initial),
            (Duration::ZERO, Duration::from_millis(250))
        );
        assert_eq!((api.permissions, api.policy.crash_soft_limit), (Permissions::Deny, 10));
        assert!(api.policy.backoff_jitter.abs() < f64::EPSILON);
    }

    #[test]
    fn an_empty_file_means_the_defaults() {
        let settings = Config::parse("").unwrap().settings("command", "x");
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn every_key_of_the_documentation_is_known_and_set() {
        for (key, kind) in KEYS {
            let (text, check): (&str, fn(Value) -> bool) = match kind {
                Kind::Count(_) => ("42", |value| value == Value::Count(42)),
                Kind::Span(_) => ("\"42s\"", |value| value == Value::Span(Duration::from_secs(42))),
                Kind::Part(_) => ("0.42", |value| value == Value::Part(0.42)),
                Kind::Flag(_) => ("true", |value| value == Value::Flag(true)),
                Kind::Word(_) => ("\"deny\"", |value| value == Value::Word(Permissions::Deny)),
            };
            let config = Config::parse(&format!("[policy]\n{key} = {text}\n")).unwrap();
            assert!(check(config.all[key]), "{key}");
            assert_ne!(config.settings("command", "x"), Settings::default(), "{key} changes something");
        }
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_line_and_the_nearest_key() {
        let rows = [
            (
                "[policy]\n\ncrash_hard_limt = 5",
                3,
                "there is no key `crash_hard_limt`; the nearest one is `crash_hard_limit`",
            ),
            ("[polcy]\n", 1, "there is no key `polcy`; the nearest one is `policy`"),
            ("[sessions.api]\nmode = \"always\"", 2, "there is no key `mode`; the nearest one is `policy`"),
            ("[policy]\ncrash_hard_limit = -1", 2, "`crash_hard_limit` is a number, 0 or more"),
            ("[policy]\ncrash_hard_limit = \"abc\"", 2, "`crash_hard_limit` is a number, 0 or more"),
            ("[policy]\nbackoff_jitter = 1.5", 2, "`backoff_jitter` is a part of one, from 0.0 to 1.0"),
            ("[policy]\nbackoff_jitter = nan", 2, "`backoff_jitter` is a part of one, from 0.0 to 1.0"),
            ("[policy]\npermissions = \"maybe\"", 2, "`permissions` is \"ask\", \"allow\" or \"deny\""),
            ("[policy]\nlimit_resume = 1", 2, "`limit_resume` is true or false"),
            ("policy = 3", 1, "a table is expected here"),
        ];
        for (text, line, problem) in rows {
            let error = Config::parse(text).unwrap_err();
            assert_eq!((error.line, error.problem.as_str()), (line, problem), "{text}");
        }
        let bare = Config::parse("[policy]\nidle_after = 5").unwrap_err();
        assert!(bare.problem.contains("250ms"), "{bare}");
        let unitless = Config::parse("[policy]\nidle_after = \"5\"").unwrap_err();
        assert!(unitless.problem.contains("needs a unit"), "{unitless}");
        assert_eq!(Config::parse("[policy]\nx = = 3").unwrap_err().line, 2);
    }
}
