//! Why a decision was made: the rule's name, its facts, and a sentence for people.

use crate::exit::{Exit, Verdict};
use crate::life::CannotStart;
use crate::rules::WaitReason;
use crate::running::Need;
use crate::unended::Unended;
use crate::words;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The rule that decided. Each variant is one rule; its snake-case name is the rule's name in logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum Why {
    /// The event is about something that is over.
    Stale,
    NothingDue,
    Noted,
    Needed {
        need: Need,
    },
    NotNeeded,
    Parking,
    /// The agent was asked to leave; now it is sent the stop signal.
    AskedToLeave,
    WaitOver,
    HolderGone,

    LocksTaken,
    LockBusy,
    Started,
    ShimGone,
    CannotStart {
        cause: CannotStart,
    },
    StartRefused {
        text: String,
        #[serde(with = "crate::time::millis")]
        wait: Duration,
    },

    EndedAsAsked {
        exit: Exit,
    },
    RestartAtOnce {
        verdict: Verdict,
        exit: Exit,
    },
    Waiting {
        reason: WaitReason,
        exit: Exit,
        crashes: u32,
        #[serde(with = "crate::time::millis")]
        wait: Duration,
    },
    Blocked {
        exit: Exit,
    },
    Failed {
        verdict: Verdict,
        exit: Exit,
    },
    RanOnce {
        verdict: Verdict,
    },
    EndedUnneeded {
        verdict: Verdict,
        exit: Exit,
    },
    Unlocked {
        exit: Exit,
    },

    OverMemoryLimit {
        bytes: u64,
        limit: u64,
    },
    WatchdogSilent,
    Unended {
        by: Unended,
    },
    VendorSessionBusy,
    VendorSessionLearned,
    VendorSessionLost,
    ConversationLost,
    Refused,
    GoingDown,

    Person(PersonAsked),
    Account(AccountStep),
    Memory(MemorySeen),
    Takeover(TakeoverStep),
    Guest(GuestStep),
    Message(MessageStep),
    Request(RequestStep),
    Recovery(RecoveryStep),
}

/// What a person asked for and got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum PersonAsked {
    Started,
    Stopped,
    Restarted,
    Archived,
    Restored,
    Purged,
    PurgedOthers,
    Interrupted,
}

/// What an account or a budget means for a session from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum AccountStep {
    Held,
    Free,
    BudgetRaised,
}

/// A memory reading that calls for something short of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum MemorySeen {
    High,
    ToConfirm,
    Unreadable,
}

/// A step of a takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum TakeoverStep {
    Begins,
    Waits,
    Joins,
    TimedOut,
    CallerGone,
    Failed,
    Ended,
}

/// A step of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum GuestStep {
    Started,
    Ended,
}

/// A step of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum MessageStep {
    Queued,
    Known,
    Taken,
    Done,
    Failed,
    Requeued,
    EndsTheWait,
    Cancelled,
    Retried,
}

/// A step of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum RequestStep {
    Opened,
    TooMany,
    AnsweredByPolicy,
    Answered,
    Withdrawn,
    Told,
}

/// What a starting daemon does with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each has its sentence in Display")]
pub enum RecoveryStep {
    Adopted,
    ShimMute,
    Unexpected,
    AsItWas,
    StartsAgain,
    MachineRestarted,
    PutBack,
}

impl Why {
    /// Returns the rule's name, as it appears in logs.
    #[must_use]
    pub fn rule(&self) -> String {
        // The Debug name is the variant's, or `Group(Step)` for a variant in a group, followed by its facts.
        let debug = format!("{self:?}");
        let name = debug.split([' ', '{']).next().unwrap_or(&debug);
        let mut rule = String::with_capacity(name.len() + 4);
        for (at, letter) in name.char_indices() {
            match letter {
                '(' | ')' => {}
                'A'..='Z' if at > 0 => rule.extend(['_', letter.to_ascii_lowercase()]),
                other => rule.push(other.to_ascii_lowercase()),
            }
        }
        rule
    }
}

impl fmt::Display for CannotStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotStart::ProgramMissing { program } => write!(f, "program `{program}` was not found"),
            CannotStart::NotExecutable { program } => write!(f, "`{program}` may not be executed"),
            CannotStart::DirectoryMissing { directory } => {
                write!(f, "directory `{directory}` does not exist")
            }
            CannotStart::InterpreterMissing { program, interpreter: Some(interpreter) } => {
                match interpreter.strip_suffix('\r') {
                    // The kernel looks for a file whose name ends with the carriage return.
                    Some(name) => write!(
                        f,
                        "`{program}`: interpreter `{name}\\r` not found: the lines end with CRLF instead of LF"
                    ),
                    None => write!(f, "`{program}`: interpreter `{interpreter}` not found"),
                }
            }
            CannotStart::InterpreterMissing { program, interpreter: None } => {
                write!(f, "`{program}`: its loader was not found")
            }
            CannotStart::DirectoryClosed { directory } => {
                write!(f, "directory `{directory}` may not be entered: permission denied")
            }
            CannotStart::Refused(refused) => f.write_str(&refused.text),
            CannotStart::LocksUnusable { problem } => write!(f, "its locks cannot be used: {problem}"),
        }
    }
}

/// How it ended, with the verdict where the end was its own.
fn judged(exit: Exit, verdict: Verdict) -> String {
    if exit.is_another_life() { format!("it {exit}") } else { format!("it {exit} ({})", verdict.word()) }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Needed { need } => need.fmt(f),
            Why::CannotStart { cause } => write!(f, "it cannot be started: {cause}"),
            Why::StartRefused { text, wait } => start_refused(f, text, *wait),
            Why::EndedAsAsked { exit } => write!(f, "it {exit}, as it was asked to end"),
            Why::RestartAtOnce { verdict, exit } => {
                write!(f, "{}; the next run starts at once", judged(*exit, *verdict))
            }
            Why::Waiting { reason, exit, crashes, wait } => waiting(f, *reason, *exit, *crashes, *wait),
            Why::Blocked { exit } => {
                write!(f, "it {exit}: another process holds what it needs, again and again")
            }
            Why::Failed { verdict, exit } => hopeless(f, *verdict, *exit),
            Why::RanOnce { verdict } => write!(f, "its one run has ended ({})", verdict.word()),
            Why::EndedUnneeded { verdict, exit } => {
                write!(f, "{}; another run is not needed", judged(*exit, *verdict))
            }
            Why::Unlocked { exit } => write!(f, "a person ended it with `unlock`: it {exit}"),
            Why::OverMemoryLimit { bytes, limit } => {
                write!(f, "it uses {} of its limit of {}", words::size(*bytes), words::size(*limit))
            }
            Why::Unended { by } => write!(f, "it should have ended, but {by}"),
            Why::Person(asked) => f.write_str(asked.sentence()),
            Why::Account(step) => f.write_str(step.sentence()),
            Why::Memory(seen) => f.write_str(seen.sentence()),
            Why::Takeover(step) => f.write_str(step.sentence()),
            Why::Guest(step) => f.write_str(step.sentence()),
            Why::Message(step) => f.write_str(step.sentence()),
            Why::Request(step) => f.write_str(step.sentence()),
            Why::Recovery(step) => f.write_str(step.sentence()),
            Why::Stale => f.write_str("this is about something that is over"),
            Why::NothingDue => f.write_str("nothing is due yet"),
            Why::Noted => f.write_str("noted"),
            Why::NotNeeded => f.write_str("it is not needed any more"),
            Why::Parking => f.write_str("it was not needed for its idle time"),
            Why::AskedToLeave => f.write_str("it was asked to leave, and is sent the stop signal"),
            Why::WaitOver => f.write_str("its wait is over"),
            Why::HolderGone => f.write_str("the holder of what it needs has gone"),
            Why::LocksTaken => f.write_str("it has its locks"),
            Why::LockBusy => f.write_str("another process holds its lock"),
            Why::Started => f.write_str("its program was started"),
            Why::ShimGone => f.write_str("its shim had left; the locks are taken again"),
            Why::WatchdogSilent => f.write_str("its watchdog was silent for too long"),
            Why::VendorSessionLearned => f.write_str("the agent said which conversation it is in"),
            Why::VendorSessionLost => f.write_str("its vendor lost a conversation without an answer"),
            Why::ConversationLost => f.write_str("its conversation cannot be continued"),
            Why::VendorSessionBusy => f.write_str("its vendor session is held by another process"),
            Why::Refused => f.write_str("that cannot be done in its state"),
            Why::GoingDown => f.write_str("the daemon is going down"),
        }
    }
}

fn hopeless(f: &mut fmt::Formatter<'_>, verdict: Verdict, exit: Exit) -> fmt::Result {
    write!(f, "it {exit} ({}); trying again would not help", verdict.word())
}

fn start_refused(f: &mut fmt::Formatter<'_>, text: &str, wait: Duration) -> fmt::Result {
    write!(f, "it could not be started: {text}; next try in {}", words::duration(wait))
}

fn waiting(
    f: &mut fmt::Formatter<'_>,
    reason: WaitReason,
    exit: Exit,
    crashes: u32,
    wait: Duration,
) -> fmt::Result {
    let wait = words::duration(wait);
    match reason {
        WaitReason::Crash | WaitReason::OutOfMemory => {
            write!(f, "it {exit} ({}, {crashes} in this streak); next run in {wait}", reason.word())
        }
        WaitReason::CleanRestartBudgetExceeded => {
            write!(f, "it ended cleanly too often in a short time; next run in {wait}")
        }
        WaitReason::MemoryDrainLoop => write!(f, "it met its memory limit too often; next run in {wait}"),
        WaitReason::Contended => write!(f, "another process holds what it needs; next try in {wait}"),
        WaitReason::StartFailed => write!(f, "it could not be started; next try in {wait}"),
        WaitReason::UsageLimit => write!(f, "it met a usage limit; next run in {wait}"),
    }
}

impl PersonAsked {
    fn sentence(self) -> &'static str {
        match self {
            PersonAsked::Started => "a person started it",
            PersonAsked::Stopped => "a person stopped it",
            PersonAsked::Restarted => "a person restarted it",
            PersonAsked::Archived => "a person archived it",
            PersonAsked::Restored => "a person restored it",
            PersonAsked::Purged => "it was purged",
            PersonAsked::PurgedOthers => "it is in use, so purge leaves it alone",
            PersonAsked::Interrupted => "a person interrupted its turn",
        }
    }
}

impl AccountStep {
    fn sentence(self) -> &'static str {
        match self {
            AccountStep::Held => "its account is held",
            AccountStep::Free => "its account works again, as far as it goes",
            AccountStep::BudgetRaised => "a person lets it spend more",
        }
    }
}

impl MemorySeen {
    fn sentence(self) -> &'static str {
        match self {
            MemorySeen::High => "its memory comes close to its limit",
            MemorySeen::ToConfirm => "its memory looks over the limit and is being read exactly",
            MemorySeen::Unreadable => "its memory cannot be read",
        }
    }
}

impl GuestStep {
    fn sentence(self) -> &'static str {
        match self {
            GuestStep::Started => "its terminal program runs beside it",
            GuestStep::Ended => "its terminal program has ended; the run goes on",
        }
    }
}

impl TakeoverStep {
    fn sentence(self) -> &'static str {
        match self {
            TakeoverStep::Begins => "a terminal takes the session over",
            TakeoverStep::Waits => "a terminal waits for the turn under way",
            TakeoverStep::Joins => "a terminal joins what is there",
            TakeoverStep::TimedOut => "the turn under way did not end in time for the takeover",
            TakeoverStep::CallerGone => "the client that asked for the takeover has gone",
            TakeoverStep::Failed => "the interactive run could not be started",
            TakeoverStep::Ended => "the interactive run has ended and hands back",
        }
    }
}

impl MessageStep {
    fn sentence(self) -> &'static str {
        match self {
            MessageStep::Queued => "a message is queued",
            MessageStep::Known => "a message with this key is known already",
            MessageStep::Taken => "the agent took the message",
            MessageStep::Done => "the answer is stored",
            MessageStep::Failed => "the message has failed",
            MessageStep::Requeued => "the message waits for its next try",
            MessageStep::EndsTheWait => "a message ends the wait",
            MessageStep::Cancelled => "a person cancelled the message",
            MessageStep::Retried => "a person wants the message tried again",
        }
    }
}

impl RequestStep {
    fn sentence(self) -> &'static str {
        match self {
            RequestStep::Opened => "the agent asks a person",
            RequestStep::TooMany => "the agent asks more than can be shown",
            RequestStep::AnsweredByPolicy => "the policy answers what the agent asks",
            RequestStep::Answered => "a person answered what the agent asked",
            RequestStep::Withdrawn => "the agent does not ask any more",
            RequestStep::Told => "the agent was told the answer",
        }
    }
}

impl RecoveryStep {
    fn sentence(self) -> &'static str {
        match self {
            RecoveryStep::Adopted => "it was found running",
            RecoveryStep::ShimMute => "its lock is held, but its shim does not answer",
            RecoveryStep::Unexpected => "a run was found that should not be there",
            RecoveryStep::AsItWas => "the daemon is back, and all is as it was",
            RecoveryStep::StartsAgain => "a start was cut short before anything ran",
            RecoveryStep::MachineRestarted => "the machine has restarted",
            RecoveryStep::PutBack => "a backup was put back",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_named_after_its_variant_and_its_group() {
        assert_eq!(Why::NothingDue.rule(), "nothing_due");
        assert_eq!(Why::OverMemoryLimit { bytes: 1, limit: 2 }.rule(), "over_memory_limit");
        assert_eq!(Why::Takeover(TakeoverStep::CallerGone).rule(), "takeover_caller_gone");
        assert_eq!(Why::Needed { need: Need::Always }.rule(), "needed");
    }

    #[test]
    fn every_step_has_a_sentence_of_its_own() {
        use {MemorySeen as M, MessageStep as S, PersonAsked as P, RecoveryStep as R, TakeoverStep as T};
        let people =
            [P::Started, P::Stopped, P::Restarted, P::Archived, P::Restored, P::Purged, P::PurgedOthers];
        let messages = [S::Queued, S::Known, S::Taken, S::Done, S::Failed, S::Requeued, S::EndsTheWait];
        let takeovers = [T::Begins, T::Waits, T::Joins, T::TimedOut, T::CallerGone, T::Failed, T::Ended];
        let recoveries = [
            R::Adopted,
            R::ShimMute,
            R::Unexpected,
            R::AsItWas,
            R::StartsAgain,
            R::MachineRestarted,
            R::PutBack,
        ];
        let needs = [Need::Always, Need::Once, Need::Turn, Need::Message, Need::Attach, Need::Person];
        let mut all: Vec<Why> = Vec::new();
        all.extend(people.into_iter().chain([P::Interrupted]).map(Why::Person));
        all.extend(messages.into_iter().chain([S::Cancelled, S::Retried]).map(Why::Message));
        all.extend(takeovers.map(Why::Takeover));
        all.extend([GuestStep::Started, GuestStep::Ended].map(Why::Guest));
        all.extend(recoveries.map(Why::Recovery));
        all.extend([M::High, M::ToConfirm, M::Unreadable].map(Why::Memory));
        // A session that a person started and one that is needed because a person started it have the same
        // sentence; so does a queued message.
        all.extend(
            needs
                .into_iter()
                .filter(|need| !matches!(need, Need::Person | Need::Message))
                .map(|need| Why::Needed { need }),
        );
        let sentences: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), all.len());
        assert!(sentences.iter().all(|sentence| sentence.split(' ').count() > 2), "{sentences:?}");
        let rules: std::collections::BTreeSet<String> = all.iter().map(Why::rule).collect();
        assert_eq!(rules.len(), all.len() - 3, "the four needs are one rule");
        assert_eq!(Need::Person.to_string(), "a person started it");
        assert_eq!(Need::Message.to_string(), "a message is queued");
    }

    #[test]
    fn a_wait_is_explained_by_its_reason() {
        let why = |reason| {
            let exit = Exit::Code(1);
            Why::Waiting { reason, exit, crashes: 3, wait: Duration::from_secs(2) }.to_string()
        };
        assert_eq!(why(WaitReason::Crash), "it exited with 1 (crash, 3 in this streak); next run in 2 s");
        assert_eq!(why(WaitReason::Contended), "another process holds what it needs; next try in 2 s");
    }
}
