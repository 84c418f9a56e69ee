//! `[retention]`: how long what happened is kept, and how large the database may become.

use super::ConfigError;
use super::reading::Reading;
use pinfold_api::units;
use std::ops::Range;
use std::time::Duration;
use toml::de::DeValue;

/// A day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long each is kept; nothing is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Events.
    pub events: Option<Duration>,
    /// Runs that have ended.
    pub runs: Option<Duration>,
    /// Messages that are done.
    pub messages: Option<Duration>,
    /// The bytes that the database may have; past them the oldest events and runs go.
    pub size: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { events: Some(400 * DAY), runs: Some(400 * DAY), messages: None, size: Some(1 << 30) }
    }
}

pub(super) const KEYS: [&str; 4] = ["events", "runs", "messages", "size"];

/// Reads the table.
pub(super) fn read(
    reading: &Reading<'_>,
    value: &DeValue<'_>,
    span: Range<usize>,
) -> Result<Retention, ConfigError> {
    let mut retention = Retention::default();
    for (key, value) in reading.table(value, span)? {
        let name = key.get_ref().as_ref();
        let problem = |problem| reading.error(value.span(), format!("`{name}` {problem}"));
        let text = value.get_ref().as_str();
        match name {
            "events" => retention.events = time(text).map_err(problem)?,
            "runs" => retention.runs = time(text).map_err(problem)?,
            "messages" => retention.messages = time(text).map_err(problem)?,
            "size" => retention.size = size(text).map_err(problem)?,
            other => return Err(reading.unknown(other, &KEYS, key.span())),
        }
    }
    Ok(retention)
}

fn time(text: Option<&str>) -> Result<Option<Duration>, String> {
    match text {
        Some("off") => Ok(None),
        Some(text) => units::duration(text)
            .map(|time| Some(time).filter(|time| !time.is_zero()))
            .map_err(|error| format!("is a duration or \"off\": {error}")),
        None => Err("is a duration in quotes, as in \"400d\", or \"off\"".into()),
    }
}

fn size(text: Option<&str>) -> Result<Option<u64>, String> {
    match text {
        Some("off") => Ok(None),
        Some(text) => units::size(text)
            .map(|size| Some(size).filter(|size| *size > 0))
            .map_err(|error| format!("is a size or \"off\": {error}")),
        None => Err("is a size in quotes, as in \"1G\", or \"off\"".into()),
    }
}
