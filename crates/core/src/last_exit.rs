//! The end of a session's last run, kept for people to read: no rule uses it.

use crate::exit::{Exit, Recognised, Verdict};
use crate::rules::verdict::Asked;
use crate::time::Wall;
use crate::words;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How the last run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastExit {
    /// What the kernel says about it.
    pub exit: Exit,
    /// The verdict on it.
    pub verdict: Verdict,
    /// What the run had been asked to do.
    pub asked: Asked,
    /// When it ended.
    pub at: Wall,
    /// How long the run lived.
    #[serde(with = "crate::time::millis")]
    pub lived: Duration,
    /// The last line it printed.
    #[serde(default)]
    pub last_line: Option<String>,
    /// What was recognised about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recognised: Option<Recognised>,
}

impl fmt::Display for LastExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            Verdict::OutOfMemory => f.write_str("was killed by the kernel for memory")?,
            Verdict::Clean
            | Verdict::Drained
            | Verdict::Contended
            | Verdict::Hopeless
            | Verdict::Limited
            | Verdict::Crash => self.exit.fmt(f)?,
        }
        write!(f, " after {}", words::duration(self.lived))?;
        self.recognised.and_then(said_of).map_or(Ok(()), |said| write!(f, ": {said}"))?;
        self.last_line.as_ref().map_or(Ok(()), |line| write!(f, ": `{line}`"))
    }
}

/// Returns what the exit code does not tell.
fn said_of(recognised: Recognised) -> Option<&'static str> {
    match recognised {
        Recognised::StaleId => Some("its vendor does not know the conversation that it was to go on with"),
        Recognised::BeginsAnother => {
            Some("its vendor did not know its conversation, in which nothing was answered")
        }
        Recognised::LoginNeeded => Some("it needs a login"),
        Recognised::NoHandshake => Some("it refused the handshake of its protocol"),
        Recognised::VendorLock | Recognised::Unlocked | Recognised::UsageLimit { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_as_a_person_would_tell_it() {
        let recognised = |exit, verdict, line: Option<&str>, recognised| {
            let (asked, lived) = (Asked::Nothing, Duration::from_millis(1_800));
            let last_line = line.map(str::to_owned);
            LastExit { exit, verdict, asked, at: Wall(0), lived, last_line, recognised }.to_string()
        };
        let last = |exit, verdict, line| recognised(exit, verdict, line, None);
        let boom = Some("RuntimeError: boom");
        let rows = [
            (last(Exit::Code(1), Verdict::Crash, boom), "exited with 1 after 1.8 s: `RuntimeError: boom`"),
            (last(Exit::Code(0), Verdict::Clean, None), "exited with 0 after 1.8 s"),
            (last(Exit::Signal(11), Verdict::Crash, None), "was killed by signal 11 after 1.8 s"),
            (
                last(Exit::Signal(9), Verdict::OutOfMemory, None),
                "was killed by the kernel for memory after 1.8 s",
            ),
            (last(Exit::ShimLost, Verdict::Crash, None), "was lost with its shim after 1.8 s"),
            (
                recognised(Exit::Code(0), Verdict::Hopeless, Some("no"), Some(Recognised::StaleId)),
                "exited with 0 after 1.8 s: its vendor does not know the conversation that it was to go on with: `no`",
            ),
            (
                recognised(Exit::Code(1), Verdict::Clean, None, Some(Recognised::BeginsAnother)),
                "exited with 1 after 1.8 s: its vendor did not know its conversation, in which nothing was answered",
            ),
        ];
        for (told, expected) in rows {
            assert_eq!(told, expected);
        }
    }
}
