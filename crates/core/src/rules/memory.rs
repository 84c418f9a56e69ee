//! Memory: when to warn, and when to drain. What was read is a number here.

use serde::{Deserialize, Serialize};

/// The memory of a process or of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// So many bytes.
    Bytes(u64),
    /// It could not be read; that is not 0.
    Unknown,
}

impl From<Option<u64>> for Reading {
    fn from(bytes: Option<u64>) -> Reading {
        bytes.map_or(Reading::Unknown, Reading::Bytes)
    }
}

/// How exact a reading of a whole run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The memory counters of the run's own control group.
    Cgroup,
    /// The sum over the processes of its tree: forked copies count twice.
    Sum,
    /// The sum of proportional shares: exact, and slow to read.
    Shares,
}

/// What is remembered between two readings of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryWatch {
    /// The latest known reading.
    pub bytes: Option<u64>,
    /// High memory was warned of, and not yet low again.
    pub warned: bool,
    /// That it cannot be read was warned of.
    pub unreadable: bool,
    /// An exact reading has been asked for.
    pub confirming: bool,
}

/// What a reading calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Nothing.
    Nothing,
    /// A warning: it is high.
    Warn,
    /// A warning: it cannot be read.
    WarnUnreadable,
    /// An exact reading: the sum is over the limit, and may count shared pages twice.
    Confirm,
    /// An end: it is over the limit.
    Drain,
}

/// Judges one reading against a limit.
#[must_use]
pub fn judge(
    watch: MemoryWatch,
    reading: Reading,
    source: Source,
    limit: u64,
    warn_part: f64,
) -> (MemoryWatch, Call) {
    let Reading::Bytes(bytes) = reading else { return unreadable(watch, source) };
    let mut after = MemoryWatch { bytes: Some(bytes), unreadable: false, ..watch };
    if source == Source::Shares {
        after.confirming = false;
    }
    if bytes >= limit {
        return over(after, source);
    }
    #[expect(clippy::cast_precision_loss, reason = "a threshold need not be exact to the byte")]
    let high = bytes as f64 >= limit as f64 * warn_part;
    after.warned = high;
    let call = if high && !watch.warned { Call::Warn } else { Call::Nothing };
    (after, call)
}

fn unreadable(watch: MemoryWatch, source: Source) -> (MemoryWatch, Call) {
    let confirming = watch.confirming && source != Source::Shares;
    let after = MemoryWatch { unreadable: true, confirming, ..watch };
    (after, if watch.unreadable { Call::Nothing } else { Call::WarnUnreadable })
}

fn over(watch: MemoryWatch, source: Source) -> (MemoryWatch, Call) {
    match source {
        Source::Cgroup | Source::Shares => (watch, Call::Drain),
        Source::Sum if watch.confirming => (watch, Call::Nothing),
        Source::Sum => (MemoryWatch { confirming: true, ..watch }, Call::Confirm),
    }
}

#[cfg(test)]
mod tests;
