//! Memory: when to warn and when to drain. A reading is only a number here.

use serde::{Deserialize, Serialize};

/// The memory of a process or of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// This many bytes.
    Bytes(u64),
    /// It could not be read, which is not the same as 0.
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
pub enum ReadingSource {
    /// The memory counters of the run's own cgroup.
    Cgroup,
    /// The sum over the processes of its tree; pages shared after a fork count twice.
    Sum,
    /// The sum of proportional shares: exact but slow to read.
    Shares,
}

/// What is remembered between two readings of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryWatch {
    /// The latest known reading, in bytes.
    pub bytes: Option<u64>,
    /// Whether high memory was warned about and has not been low again since.
    pub warned: bool,
    /// Whether it was warned that the memory cannot be read.
    pub unreadable: bool,
    /// Whether an exact reading was requested.
    pub confirming: bool,
}

/// What a reading calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryCall {
    /// Nothing to do.
    Nothing,
    /// A warning that memory is high.
    Warn,
    /// A warning that memory cannot be read.
    WarnUnreadable,
    /// An exact reading: the sum is over the limit but may count shared pages twice.
    Confirm,
    /// The end of the run: it is over the limit.
    Drain,
}

/// Judges one reading against a limit.
#[must_use]
pub fn judge(
    watch: MemoryWatch,
    reading: Reading,
    source: ReadingSource,
    limit: u64,
    warn_part: f64,
) -> (MemoryWatch, MemoryCall) {
    let Reading::Bytes(bytes) = reading else { return unreadable(watch, source) };
    let mut after = MemoryWatch { bytes: Some(bytes), unreadable: false, ..watch };
    if source == ReadingSource::Shares {
        after.confirming = false;
    }
    if bytes >= limit {
        return over(after, source);
    }
    #[expect(clippy::cast_precision_loss, reason = "a threshold need not be exact to the byte")]
    let high = bytes as f64 >= limit as f64 * warn_part;
    after.warned = high;
    let call = if high && !watch.warned { MemoryCall::Warn } else { MemoryCall::Nothing };
    (after, call)
}

fn unreadable(watch: MemoryWatch, source: ReadingSource) -> (MemoryWatch, MemoryCall) {
    let confirming = watch.confirming && source != ReadingSource::Shares;
    let after = MemoryWatch { unreadable: true, confirming, ..watch };
    (after, if watch.unreadable { MemoryCall::Nothing } else { MemoryCall::WarnUnreadable })
}

fn over(watch: MemoryWatch, source: ReadingSource) -> (MemoryWatch, MemoryCall) {
    match source {
        ReadingSource::Cgroup | ReadingSource::Shares => (watch, MemoryCall::Drain),
        ReadingSource::Sum if watch.confirming => (watch, MemoryCall::Nothing),
        ReadingSource::Sum => (MemoryWatch { confirming: true, ..watch }, MemoryCall::Confirm),
    }
}

#[cfg(test)]
mod tests;
