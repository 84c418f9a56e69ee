//! One verdict for each end: what we asked for, then what the agent announced, then what its adapter
//! recognised, then what the kernel says. No guess by uptime, no magic code except the published ones.

use crate::exit::{Ended, Exit, ExitNotice, Recognised, Verdict};
use serde::{Deserialize, Serialize};

/// What we had asked of the run when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Nothing: it ended by itself.
    Nothing,
    /// To end: stop, restart, park, archive, takeover, interrupt.
    ToEnd,
    /// To end because of its memory limit.
    ToDrain,
    /// To end because another process holds its vendor session.
    ToYield,
    /// To end because its watchdog was silent.
    ToRevive,
}

/// `EX_TEMPFAIL`: another process holds what it needs.
const TRY_LATER: i32 = 75;
/// `EX_CONFIG`, and the shells' "found but not executable" and "not found".
const POINTLESS: [i32; 3] = [78, 126, 127];
const SIGKILL: i32 = 9;

/// Judges how one run ended.
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
        (Some(ExitNotice::Drained), _) => Verdict::Drained,
        (Some(ExitNotice::Contended), _) => Verdict::Contended,
        (Some(ExitNotice::Hopeless), _) => Verdict::Hopeless,
        (Some(ExitNotice::Limited), _) => Verdict::Limited,
        (None, Some(Recognised::Unlocked | Recognised::BeginsAnother)) => Verdict::Clean,
        (None, Some(Recognised::VendorLock)) => Verdict::Contended,
        (None, Some(Recognised::StaleId | Recognised::LoginNeeded)) => Verdict::Hopeless,
        (None, Some(Recognised::UsageLimit { .. })) => Verdict::Limited,
        (None, Some(Recognised::NoHandshake)) => Verdict::Crash,
        (None, None) => by_kernel(ended),
    }
}

fn by_kernel(ended: &Ended) -> Verdict {
    match ended.exit {
        Exit::Code(0) => Verdict::Clean,
        Exit::Code(TRY_LATER) => Verdict::Contended,
        Exit::Code(code) if POINTLESS.contains(&code) => Verdict::Hopeless,
        Exit::Signal(SIGKILL) if ended.oom_killed => Verdict::OutOfMemory,
        Exit::Code(_)
        | Exit::Signal(_)
        | Exit::ShimLost
        | Exit::MachineLost
        | Exit::AfterBackup
        | Exit::NeverStarted => Verdict::Crash,
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

    fn code(code: i32) -> Ended {
        end(Exit::Code(code))
    }

    fn signal(signal: i32) -> Ended {
        end(Exit::Signal(signal))
    }

    fn oom(exit: Exit) -> Ended {
        Ended { oom_killed: true, ..end(exit) }
    }

    #[test]
    fn an_end_that_nobody_asked_for_is_judged_by_what_is_known_of_it() {
        let said = |said, exit| Ended { said: Some(said), ..end(exit) };
        let recognised = |what, exit| Ended { recognised: Some(what), ..end(exit) };
        let limit = Recognised::UsageLimit { resets: Some(Wall(1)) };
        let rows = [
            (code(0), Verdict::Clean),
            (signal(15), Verdict::Crash),
            (code(143), Verdict::Crash),
            (code(130), Verdict::Crash),
            (code(1), Verdict::Crash),
            (code(2), Verdict::Crash),
            (code(12), Verdict::Crash),
            (code(255), Verdict::Crash),
            (said(ExitNotice::Drained, Exit::Code(3)), Verdict::Drained),
            (said(ExitNotice::Drained, Exit::Code(0)), Verdict::Drained),
            (code(75), Verdict::Contended),
            (said(ExitNotice::Contended, Exit::Code(1)), Verdict::Contended),
            (recognised(Recognised::VendorLock, Exit::Code(1)), Verdict::Contended),
            (code(78), Verdict::Hopeless),
            (code(126), Verdict::Hopeless),
            (code(127), Verdict::Hopeless),
            (said(ExitNotice::Hopeless, Exit::Code(0)), Verdict::Hopeless),
            (recognised(Recognised::StaleId, Exit::Code(1)), Verdict::Hopeless),
            (recognised(Recognised::StaleId, Exit::Code(0)), Verdict::Hopeless),
            (recognised(Recognised::BeginsAnother, Exit::Code(1)), Verdict::Clean),
            (recognised(Recognised::NoHandshake, Exit::Code(0)), Verdict::Crash),
            (recognised(Recognised::LoginNeeded, Exit::Code(1)), Verdict::Hopeless),
            (oom(Exit::Signal(9)), Verdict::OutOfMemory),
            (signal(9), Verdict::Crash),
            (oom(Exit::Signal(11)), Verdict::Crash),
            (signal(11), Verdict::Crash),
            (signal(6), Verdict::Crash),
            (code(137), Verdict::Crash),
            (oom(Exit::Code(137)), Verdict::Crash),
            (said(ExitNotice::Limited, Exit::Code(1)), Verdict::Limited),
            (recognised(limit, Exit::Code(0)), Verdict::Limited),
            (end(Exit::ShimLost), Verdict::Crash),
            (end(Exit::MachineLost), Verdict::Crash),
            (end(Exit::NeverStarted), Verdict::Crash),
        ];
        for (ended, expected) in rows {
            assert_eq!(judge(Asked::Nothing, &ended), expected, "{ended:?}");
        }
    }

    #[test]
    fn an_end_that_was_asked_for_is_what_was_asked_for() {
        let rows = [
            (Asked::ToEnd, code(0), Verdict::Clean),
            (Asked::ToEnd, signal(15), Verdict::Clean),
            (Asked::ToEnd, Ended { forced: true, ..signal(9) }, Verdict::Clean),
            (Asked::ToEnd, code(143), Verdict::Clean),
            (Asked::ToEnd, code(1), Verdict::Clean),
            (Asked::ToEnd, code(78), Verdict::Clean),
            (Asked::ToDrain, signal(15), Verdict::Drained),
            (Asked::ToDrain, Ended { forced: true, ..signal(9) }, Verdict::Drained),
            (Asked::ToDrain, oom(Exit::Signal(9)), Verdict::Drained),
            (Asked::ToYield, signal(15), Verdict::Contended),
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
