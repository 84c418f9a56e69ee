//! One verdict for each end: what we asked for, then what the agent said, then what its adapter
//! recognised, then what the kernel says. No guess by uptime, no magic code but the published ones.

use crate::exit::{Ended, Exit, Recognised, Said, Verdict};
use serde::{Deserialize, Serialize};

/// What we had asked of the run when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Nothing: the end is its own.
    Nothing,
    /// To end: stop, restart, park, archive, takeover, interrupt.
    ToEnd,
    /// To end because of its memory limit.
    ToDrain,
    /// To end because somebody else holds its vendor session.
    ToYield,
    /// To end because its watchdog was silent.
    ToRevive,
}

/// `EX_TEMPFAIL`: somebody else holds what it needs.
const TRY_LATER: i32 = 75;
/// `EX_CONFIG`, "found but not executable" and "not found" of the shells.
const POINTLESS: [i32; 3] = [78, 126, 127];
const SIGKILL: i32 = 9;

/// Judges one end.
#[must_use]
pub fn judge(asked: Asked, ended: &Ended) -> Verdict {
    match asked {
        Asked::ToEnd => Verdict::Clean,
        Asked::ToDrain => Verdict::Drained,
        Asked::ToYield => Verdict::Contended,
        Asked::ToRevive => Verdict::Crash,
        Asked::Nothing => unasked(ended),
    }
}

fn unasked(ended: &Ended) -> Verdict {
    match (ended.said, ended.recognised) {
        (Some(Said::Drained), _) => Verdict::Drained,
        (Some(Said::Contended), _) => Verdict::Contended,
        (Some(Said::Hopeless), _) => Verdict::Hopeless,
        (Some(Said::Limited), _) => Verdict::Limited,
        (None, Some(Recognised::Unlocked)) => Verdict::Clean,
        (None, Some(Recognised::VendorLock)) => Verdict::Contended,
        (None, Some(Recognised::StaleId | Recognised::LoginNeeded)) => Verdict::Hopeless,
        (None, Some(Recognised::UsageLimit { .. })) => Verdict::Limited,
        (None, None) => by_kernel(ended),
    }
}

fn by_kernel(ended: &Ended) -> Verdict {
    match ended.exit {
        Exit::Code(0) => Verdict::Clean,
        Exit::Code(TRY_LATER) => Verdict::Contended,
        Exit::Code(code) if POINTLESS.contains(&code) => Verdict::Hopeless,
        Exit::Signal(SIGKILL) if ended.oom_killed => Verdict::OutOfMemory,
        Exit::Code(_) | Exit::Signal(_) | Exit::ShimLost | Exit::MachineLost | Exit::NeverStarted => {
            Verdict::Crash
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Wall;
    use std::time::Duration;

    fn end(exit: Exit) -> Ended {
        Ended::new(exit, Duration::from_secs(1))
    }

    #[test]
    fn every_row_of_the_verdict_table() {
        let code = |code| end(Exit::Code(code));
        let signal = |signal| end(Exit::Signal(signal));
        let said = |said, exit| Ended { said: Some(said), ..end(exit) };
        let recognised = |what, exit| Ended { recognised: Some(what), ..end(exit) };
        let oom = |exit| Ended { oom_killed: true, ..end(exit) };
        let rows: Vec<(Asked, Ended, Verdict)> = vec![
            (Asked::Nothing, code(0), Verdict::Clean),
            (Asked::ToEnd, code(0), Verdict::Clean),
            (Asked::ToEnd, signal(15), Verdict::Clean),
            (Asked::ToEnd, Ended { forced: true, ..signal(9) }, Verdict::Clean),
            (Asked::ToEnd, code(143), Verdict::Clean),
            (Asked::ToEnd, code(1), Verdict::Clean),
            (Asked::ToEnd, code(78), Verdict::Clean),
            (Asked::Nothing, signal(15), Verdict::Crash),
            (Asked::Nothing, code(143), Verdict::Crash),
            (Asked::Nothing, code(130), Verdict::Crash),
            (Asked::Nothing, code(1), Verdict::Crash),
            (Asked::Nothing, code(2), Verdict::Crash),
            (Asked::Nothing, code(12), Verdict::Crash),
            (Asked::Nothing, code(255), Verdict::Crash),
            (Asked::Nothing, said(Said::Drained, Exit::Code(3)), Verdict::Drained),
            (Asked::Nothing, said(Said::Drained, Exit::Code(0)), Verdict::Drained),
            (Asked::ToDrain, signal(15), Verdict::Drained),
            (Asked::ToDrain, Ended { forced: true, ..signal(9) }, Verdict::Drained),
            (Asked::ToDrain, oom(Exit::Signal(9)), Verdict::Drained),
            (Asked::Nothing, code(75), Verdict::Contended),
            (Asked::Nothing, said(Said::Contended, Exit::Code(1)), Verdict::Contended),
            (Asked::Nothing, recognised(Recognised::VendorLock, Exit::Code(1)), Verdict::Contended),
            (Asked::ToYield, signal(15), Verdict::Contended),
            (Asked::Nothing, code(78), Verdict::Hopeless),
            (Asked::Nothing, code(126), Verdict::Hopeless),
            (Asked::Nothing, code(127), Verdict::Hopeless),
            (Asked::Nothing, said(Said::Hopeless, Exit::Code(0)), Verdict::Hopeless),
            (Asked::Nothing, recognised(Recognised::StaleId, Exit::Code(1)), Verdict::Hopeless),
            (Asked::Nothing, recognised(Recognised::LoginNeeded, Exit::Code(1)), Verdict::Hopeless),
            (Asked::Nothing, oom(Exit::Signal(9)), Verdict::OutOfMemory),
            (Asked::Nothing, signal(9), Verdict::Crash),
            (Asked::Nothing, oom(Exit::Signal(11)), Verdict::Crash),
            (Asked::Nothing, signal(11), Verdict::Crash),
            (Asked::Nothing, signal(6), Verdict::Crash),
            (Asked::Nothing, code(137), Verdict::Crash),
            (Asked::Nothing, oom(Exit::Code(137)), Verdict::Crash),
            (Asked::Nothing, said(Said::Limited, Exit::Code(1)), Verdict::Limited),
            (
                Asked::Nothing,
                recognised(Recognised::UsageLimit { resets: Some(Wall(1)) }, Exit::Code(0)),
                Verdict::Limited,
            ),
            (Asked::Nothing, end(Exit::ShimLost), Verdict::Crash),
            (Asked::Nothing, end(Exit::MachineLost), Verdict::Crash),
            (Asked::Nothing, end(Exit::NeverStarted), Verdict::Crash),
            (Asked::ToRevive, signal(9), Verdict::Crash),
            (Asked::ToRevive, code(0), Verdict::Crash),
        ];
        for (asked, ended, expected) in rows {
            assert_eq!(judge(asked, &ended), expected, "{asked:?} {ended:?}");
        }
    }

    #[test]
    fn an_end_that_a_person_brought_about_by_unlock_is_clean() {
        let unlocked = |exit| Ended { recognised: Some(Recognised::Unlocked), ..end(exit) };
        for exit in [Exit::Signal(9), Exit::ShimLost] {
            assert_eq!(judge(Asked::Nothing, &unlocked(exit)), Verdict::Clean, "{exit:?}");
        }
        assert_eq!(judge(Asked::ToDrain, &unlocked(Exit::Signal(9))), Verdict::Drained);
    }

    #[test]
    fn a_137_from_a_shell_is_a_code_and_no_signal() {
        assert_eq!((Exit::Code(137).code(), Exit::Code(137).signal()), (Some(137), None));
        assert_eq!((Exit::Signal(9).code(), Exit::Signal(9).signal()), (None, Some(9)));
        for unknown in [Exit::ShimLost, Exit::MachineLost, Exit::NeverStarted] {
            assert_eq!((unknown.code(), unknown.signal()), (None, None));
        }
    }
}
