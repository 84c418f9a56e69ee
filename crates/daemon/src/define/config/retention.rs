//! `[retention]`: how long history is kept, and how large the database may become.

use super::value::{TextVisitor, wrong};
use pinfold_api::units;
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// The length of a day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Forever, or without a limit.
const OFF: &str = "off";

/// How long each kind of record is kept; `None` means forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// How long events are kept.
    #[serde(deserialize_with = "time")]
    pub events: Option<Duration>,
    /// How long ended runs are kept.
    #[serde(deserialize_with = "time")]
    pub runs: Option<Duration>,
    /// How long done messages are kept.
    #[serde(deserialize_with = "time")]
    pub messages: Option<Duration>,
    /// The size limit of the database in bytes; beyond it the oldest events and runs are deleted.
    #[serde(deserialize_with = "size")]
    pub size: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { events: Some(400 * DAY), runs: Some(400 * DAY), messages: None, size: Some(1 << 30) }
    }
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = from.deserialize_any(TextVisitor("is a duration in quotes, as in \"400d\", or \"off\""))?;
    if text == OFF {
        return Ok(None);
    }
    let time = units::duration(&text);
    let time = time.map_err(|error| wrong(&text, &format!("is a duration or \"off\": {error}")))?;
    Ok(Some(time).filter(|time| !time.is_zero()))
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = from.deserialize_any(TextVisitor("is a size in quotes, as in \"1G\", or \"off\""))?;
    if text == OFF {
        return Ok(None);
    }
    let size = units::size(&text);
    let size = size.map_err(|error| wrong(&text, &format!("is a size or \"off\": {error}")))?;
    Ok(Some(size).filter(|size| *size > 0))
}
