//! Memory: what `/proc/PID/status` says, and when to warn or to drain.

mod counters;

pub use counters::{parse_rollup, parse_stat, parse_swap};
use serde::{Deserialize, Serialize};

/// Reads the memory of one process from the text of its `/proc/PID/status`, in bytes.
///
/// That is `RssAnon` + `RssShmem`; their presence decides, not their value. Only where both are missing, or
/// one is malformed, `VmRSS` (which counts mapped files too) stands in. A malformed field is never 0: with
/// nothing to fall back on the answer is [`Reading::Unknown`]. A process without any of the lines is a zombie
/// or a kernel thread and has no memory.
///
/// ```
/// use pinfold_core::rules::memory::{parse_status, Reading};
/// let text = "Name:\tclaude\nVmRSS:\t  7000000 kB\nRssAnon:\t    1024 kB\nRssFile:\t 6000000 kB\nRssShmem:\t       0 kB\n";
/// assert_eq!(parse_status(text), Reading::Bytes(1_048_576));
/// ```
#[must_use]
pub fn parse_status(text: &str) -> Reading {
    let resident = Field::find(text, "VmRSS");
    match (Field::find(text, "RssAnon"), Field::find(text, "RssShmem")) {
        (Field::Missing, Field::Missing) => resident.or_nothing(),
        (Field::Malformed, _) | (_, Field::Malformed) => resident.or_unknown(),
        (anon, shmem) => anon
            .kibibytes()
            .checked_add(shmem.kibibytes())
            .and_then(|sum| sum.checked_mul(1024))
            .map_or_else(|| resident.or_unknown(), Reading::Bytes),
    }
}

/// The memory of a process or of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// So many bytes.
    Bytes(u64),
    /// It could not be read; that is not 0.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Missing,
    Malformed,
    Kibibytes(u64),
}

impl Field {
    fn find(text: &str, name: &str) -> Field {
        let mut found = Field::Missing;
        for line in text.split('\n') {
            let Some(value) = line.trim_start().strip_prefix(name).and_then(|rest| rest.strip_prefix(':'))
            else {
                continue;
            };
            // Blanks before the name are not the kernel's grammar; nor is the same field twice.
            if found != Field::Missing || !line.starts_with(name) {
                return Field::Malformed;
            }
            found = Field::value(value.strip_suffix('\r').unwrap_or(value));
        }
        found
    }

    fn value(text: &str) -> Field {
        let digits = text.trim_start_matches([' ', '\t']);
        let blank = digits.len() < text.len();
        let number = digits.strip_suffix(" kB").filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        match number.and_then(|n| n.parse().ok()) {
            Some(kibibytes) if blank => Field::Kibibytes(kibibytes),
            Some(_) | None => Field::Malformed,
        }
    }

    fn kibibytes(self) -> u64 {
        match self {
            Field::Kibibytes(kibibytes) => kibibytes,
            Field::Missing | Field::Malformed => 0,
        }
    }

    fn or_nothing(self) -> Reading {
        match self {
            Field::Missing => Reading::Bytes(0),
            Field::Malformed | Field::Kibibytes(_) => self.or_unknown(),
        }
    }

    fn or_unknown(self) -> Reading {
        match self {
            Field::Kibibytes(kibibytes) => {
                kibibytes.checked_mul(1024).map_or(Reading::Unknown, Reading::Bytes)
            }
            Field::Missing | Field::Malformed => Reading::Unknown,
        }
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
