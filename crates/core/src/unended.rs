//! Runs that should have ended and have not: what is in the way, why, and what a person can do about it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a run that was asked to end, or whose agent has ended, is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unended {
    /// Its shim does not answer: it is stopped, frozen, or in uninterruptible sleep.
    Silent {
        /// The shim's pid, if it is known.
        shim: Option<u32>,
    },
    /// Its shim answers, but some of the process tree does not end.
    Survivors {
        /// The shim's pid, if it is known.
        shim: Option<u32>,
        /// The processes that are left. Empty if the shim is of an older version and cannot tell.
        left: Vec<Survivor>,
    },
}

/// A process of a run that could not be ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its pid.
    pub pid: u32,
    /// Its name, as the kernel knows it.
    pub name: String,
    /// Why it still lives.
    pub why: Undying,
}

/// Why a process could not be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undying {
    /// It runs as another user, so we may not signal it.
    NotPermitted {
        /// The id of that user.
        uid: u32,
    },
    /// SIGKILL was sent, and it has not ended.
    DoesNotEnd,
}

/// How many survivors are named; the rest are only counted.
const NAMED: usize = 4;

impl Unended {
    /// Returns the processes that are in the way.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Unended::Silent { shim } => shim.iter().copied().collect(),
            Unended::Survivors { left, .. } => left.iter().map(|survivor| survivor.pid).collect(),
        }
    }

    /// Returns what a person can do; `unlock` is the command that ends the holder of the session's lock.
    #[must_use]
    pub fn advice(&self, unlock: &str) -> String {
        match self {
            Unended::Silent { shim: Some(shim) } => {
                format!("`kill -CONT {shim}` lets it go on if it was stopped, `{unlock}` ends it")
            }
            Unended::Silent { shim: None } => format!("`{unlock}` ends it"),
            Unended::Survivors { left, shim } => match (left.first(), shim) {
                (Some(Survivor { pid, why: Undying::NotPermitted { .. }, .. }), _) => {
                    format!("`sudo kill {pid}` may end it, and then the rest follows by itself")
                }
                (Some(_), _) => "the rest follows by itself when it has gone".into(),
                (None, Some(shim)) => format!("`pstree -p {shim}` shows it"),
                (None, None) => "the rest follows by itself when it has gone".into(),
            },
        }
    }
}

impl fmt::Display for Unended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unended::Silent { shim: Some(shim) } => write!(f, "its shim (pid {shim}) does not answer"),
            Unended::Silent { shim: None } => f.write_str("its shim does not answer"),
            Unended::Survivors { left, .. } if left.is_empty() => {
                f.write_str("something that it started does not end")
            }
            Unended::Survivors { left, .. } => {
                let named: Vec<String> = left.iter().take(NAMED).map(ToString::to_string).collect();
                f.write_str(&named.join(", "))?;
                match left.len().saturating_sub(NAMED) {
                    0 => Ok(()),
                    more => write!(f, ", and {more} more"),
                }
            }
        }
    }
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Survivor { pid, name, why } = self;
        match why {
            Undying::NotPermitted { uid } => {
                write!(f, "pid {pid} ({name}) cannot be ended: it runs as user {uid}")
            }
            Undying::DoesNotEnd => write!(f, "pid {pid} ({name}) does not end: SIGKILL has no effect on it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survivor(pid: u32, why: Undying) -> Survivor {
        Survivor { pid, name: "sleep".into(), why }
    }

    #[test]
    fn everybody_in_the_way_is_named_with_the_reason() {
        let silent = Unended::Silent { shim: Some(12) };
        assert_eq!(silent.to_string(), "its shim (pid 12) does not answer");
        assert_eq!(silent.pids(), [12]);
        assert!(silent.advice("unlock --kill").contains("kill -CONT 12"));
        let left = vec![survivor(7, Undying::NotPermitted { uid: 0 }), survivor(8, Undying::DoesNotEnd)];
        let survivors = Unended::Survivors { shim: Some(12), left };
        assert_eq!(
            survivors.to_string(),
            "pid 7 (sleep) cannot be ended: it runs as user 0, \
             pid 8 (sleep) does not end: SIGKILL has no effect on it"
        );
        assert_eq!(survivors.pids(), [7, 8]);
    }

    #[test]
    fn many_survivors_are_counted_and_few_are_named() {
        let left = (1..=6).map(|pid| survivor(pid, Undying::DoesNotEnd)).collect();
        let text = Unended::Survivors { shim: None, left }.to_string();
        assert!(
            text.contains("pid 4 ") && !text.contains("pid 5 ") && text.ends_with(", and 2 more"),
            "{text}"
        );
    }

    #[test]
    fn what_an_older_shim_cannot_name_is_said_all_the_same() {
        let unknown = Unended::Survivors { shim: Some(12), left: Vec::new() };
        assert_eq!(unknown.to_string(), "something that it started does not end");
        assert!(unknown.advice("unlock --kill").contains("12"));
    }
}
