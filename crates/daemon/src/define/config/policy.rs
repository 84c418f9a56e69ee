//! The numbers of `[policy]`: which keys there are, how each is written, and where its value goes.

use super::ConfigError;
use super::reading::Reading;
use pinfold_api::units;
use pinfold_core::Policy;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::de::DeValue;

/// The numbers of one session: the core's policy, and what only the shell goes by.
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
    /// So many bytes of text may wait in an inbox; zero is no limit.
    pub inbox_limit: u64,
    /// So many sessions there may be in all, archived ones too; zero is no limit.
    pub session_limit: u32,
    /// What becomes of callers that are confined.
    pub confined: Confined,
    /// How many children a session may be given by its own runs.
    pub child_limit: u32,
    /// How many generations runs may make below a person's session.
    pub child_depth: u32,
}

/// What becomes of callers that are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confined {
    /// They may start, change and end nothing.
    Refuse,
    /// They count as if they were not confined.
    Allow,
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
            inbox_limit: 64 << 20,
            session_limit: 4096,
            confined: Confined::Refuse,
            child_limit: 32,
            child_depth: 4,
        }
    }
}

/// Values by the name of their key, as the file has them.
pub(super) type Changes = BTreeMap<&'static str, Value>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Count(u32),
    Span(Duration),
    Size(u64),
    Part(f64),
    Flag(bool),
    Word(Permissions),
    Confined(Confined),
}

/// How the value of a key is written.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Count(fn(&mut Settings) -> &mut u32),
    Span(fn(&mut Settings) -> &mut Duration),
    /// A duration between two readings: nothing can be read all the time.
    Pace(fn(&mut Settings) -> &mut Duration),
    Size(fn(&mut Settings) -> &mut u64),
    Part(fn(&mut Settings) -> &mut f64),
    Flag(fn(&mut Settings) -> &mut bool),
    Word(fn(&mut Settings) -> &mut Permissions),
    Confined(fn(&mut Settings) -> &mut Confined),
}

/// A reading costs about 10 µs: at this pace one session alone takes 0.1 ms/s.
const SHORTEST_PACE: Duration = Duration::from_millis(100);

pub(super) const KEYS: [(&str, Kind); 29] = [
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
    ("memory_sample", Kind::Pace(|s| &mut s.memory_sample)),
    ("watchdog", Kind::Span(|s| &mut s.policy.watchdog)),
    ("permissions", Kind::Word(|s| &mut s.permissions)),
    ("hold_limit", Kind::Span(|s| &mut s.hold_limit)),
    ("inbox_limit", Kind::Size(|s| &mut s.inbox_limit)),
    ("session_limit", Kind::Count(|s| &mut s.session_limit)),
    ("confined", Kind::Confined(|s| &mut s.confined)),
    ("child_limit", Kind::Count(|s| &mut s.child_limit)),
    ("child_depth", Kind::Count(|s| &mut s.child_depth)),
    ("limit_resume", Kind::Flag(|s| &mut s.policy.limit_resume)),
];

impl Settings {
    /// Takes over what a table of the file says.
    pub(super) fn change(&mut self, changes: &Changes) {
        for (key, value) in changes {
            if let Some((_, kind)) = KEYS.iter().find(|(name, _)| name == key) {
                set(self, *kind, *value);
            }
        }
    }
}

fn set(settings: &mut Settings, kind: Kind, value: Value) {
    match (kind, value) {
        (Kind::Count(field), Value::Count(count)) => *field(settings) = count,
        (Kind::Span(field) | Kind::Pace(field), Value::Span(span)) => *field(settings) = span,
        (Kind::Size(field), Value::Size(size)) => *field(settings) = size,
        (Kind::Part(field), Value::Part(part)) => *field(settings) = part,
        (Kind::Flag(field), Value::Flag(flag)) => *field(settings) = flag,
        (Kind::Word(field), Value::Word(word)) => *field(settings) = word,
        (Kind::Confined(field), Value::Confined(word)) => *field(settings) = word,
        // A value is made by the kind of its key, so the two always agree.
        (
            Kind::Count(_)
            | Kind::Span(_)
            | Kind::Pace(_)
            | Kind::Size(_)
            | Kind::Part(_)
            | Kind::Flag(_)
            | Kind::Word(_)
            | Kind::Confined(_),
            _,
        ) => {}
    }
}

/// Reads a table of numbers.
pub(super) fn read(
    reading: &Reading<'_>,
    value: &DeValue<'_>,
    span: Range<usize>,
) -> Result<Changes, ConfigError> {
    let mut changes = Changes::new();
    for (key, value) in reading.table(value, span)? {
        let Some((name, kind)) = KEYS.iter().find(|(name, _)| *name == key.get_ref().as_ref()) else {
            return Err(reading.unknown(key.get_ref(), &KEYS.map(|(name, _)| name), key.span()));
        };
        let problem = |problem| reading.error(value.span(), format!("`{name}` {problem}"));
        changes.insert(name, read_value(*kind, value.get_ref()).map_err(problem)?);
    }
    Ok(changes)
}

fn read_value(kind: Kind, value: &DeValue<'_>) -> Result<Value, String> {
    match kind {
        Kind::Count(_) => count(value).map(Value::Count),
        Kind::Span(_) => span(value).map(Value::Span),
        Kind::Pace(_) => pace(value).map(Value::Span),
        Kind::Size(_) => size(value).map(Value::Size),
        Kind::Part(_) => part(value).map(Value::Part),
        Kind::Flag(_) => value.as_bool().map(Value::Flag).ok_or_else(|| "is true or false".into()),
        Kind::Word(_) => word(value).map(Value::Word),
        Kind::Confined(_) => confined(value).map(Value::Confined),
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

fn pace(value: &DeValue<'_>) -> Result<Duration, String> {
    let pace = span(value)?;
    if pace < SHORTEST_PACE {
        return Err(format!("is at least \"{}ms\"", SHORTEST_PACE.as_millis()));
    }
    Ok(pace)
}

fn size(value: &DeValue<'_>) -> Result<u64, String> {
    let text = value.as_str().ok_or("is a size in quotes, as in \"512M\" or \"2G\"")?;
    units::size(text).map_err(|error| format!("is a size: {error}"))
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

fn confined(value: &DeValue<'_>) -> Result<Confined, String> {
    match value.as_str() {
        Some("refuse") => Ok(Confined::Refuse),
        Some("allow") => Ok(Confined::Allow),
        Some(_) | None => Err("is \"refuse\" or \"allow\"".into()),
    }
}
