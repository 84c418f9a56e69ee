//! `why S` in one sentence: the state, the reason, and what comes next.

use crate::guest::GuestStage;
use crate::hold::Hold;
use crate::life::{
    BlockedOn, CannotStart, FailCause, Goal, HolderSeen, IdleSince, Life, StartRefused, StartStage, State,
};
use crate::policy::Mode;
use crate::rules::WaitReason;
use crate::rules::verdict::Asked;
use crate::session::{Session, Upcoming};
use crate::time::{Boot, Now};
use crate::words;
use std::borrow::Cow;
use std::time::Duration;

/// What helps if messages have used up their right to end the wait.
const START_NOW: &str = "; `start` runs it now, more messages do not";

impl Session {
    /// Returns the state, the reason, and what comes next and when.
    #[must_use]
    pub fn explain(&self, now: Now) -> String {
        self.explain_as("S", now)
    }

    /// The same, with the session's name in what is said of its conversation.
    #[must_use]
    pub fn explain_as(&self, name: &str, now: Now) -> String {
        let mut sentence = match (&self.life, self.talk.lost()) {
            (Life::Failed { cause: FailCause::ConversationLost }, Some(lost)) => {
                format!("failed: {}; {}", lost.sentence(name), lost.next_step(name))
            }
            _ => self.what_is(now),
        };
        match &self.live.unended {
            Some(by) => sentence.push_str(&format!("; {by}; {}", by.advice("unlock --kill"))),
            None if self.live.mute => sentence.push_str("; its shim holds the lock and does not answer"),
            None => {}
        }
        // The sentence about a wait already says when it ends.
        let waits = matches!(self.life, Life::Backoff { .. });
        let next = if waits { None } else { self.what_is_next(now.boot) };
        let unsaved = self.live.unsaved.then(|| {
            "the agent has not saved what was said last, so it is not parked; check its settings and its disk".into()
        });
        for part in
            [self.who_is_there(), self.who_visits(), self.what_waits(), unsaved, next].into_iter().flatten()
        {
            sentence.push_str("; ");
            sentence.push_str(&part);
        }
        sentence
    }

    /// Returns how the last run ended and what follows, for a client that watched it end.
    #[must_use]
    pub fn explain_end(&self, now: Now) -> Option<String> {
        let exit = self.last_exit()?;
        Some(match &self.life {
            Life::Backoff { reason, refused, holder, .. } => {
                self.waiting(*reason, refused.as_deref(), holder.as_deref(), now)
            }
            Life::Failed { .. } => format!("{exit}; it needs attention"),
            Life::Starting { .. } | Life::Running { .. } | Life::Held { .. } => {
                format!("{exit}; it runs again")
            }
            Life::Idle { .. }
            | Life::Stopping { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Archived { .. } => exit.to_string(),
        })
    }

    /// Returns how the terminal program beside the run ended, for a client that watched it end.
    #[must_use]
    pub fn explain_guest_end(&self) -> Option<String> {
        let GuestStage::Gone { exit: Some(exit) } = self.guest()?.stage else { return None };
        Some(format!("its terminal program {exit}"))
    }

    /// Returns what keeps it from its next turn, what happens next, and what a person can do about it.
    fn held_because(&self, hold: &Hold, now: Now) -> String {
        let goes_on = match hold.until.map(|until| until.boot.since(now.boot)) {
            Some(wait) if wait > Duration::ZERO && hold.asks => {
                format!("; resets in {}; then run {}", words::duration(wait), hold.remedy())
            }
            Some(wait) if wait > Duration::ZERO => format!("; goes on in {}", words::duration(wait)),
            Some(_) if hold.asks => format!("; it may have reset; run {} to go on", hold.remedy()),
            Some(_) => "; goes on when its turn comes".into(),
            None => format!("; run {} to go on", hold.remedy()),
        };
        let running = if self.live_run().is_some() { "; its run is kept" } else { "" };
        format!("blocked: {hold}{goes_on}{running}")
    }

    fn what_is(&self, now: Now) -> String {
        if let Some(hold) = self.hold().filter(|_| self.is_paused() && self.state() == State::Blocked) {
            return self.held_because(&hold, now);
        }
        match &self.life {
            Life::Idle { since } => format!("idle: {}", self.idle_because(*since)),
            Life::Starting { stage: StartStage::Reserving, .. } => "starting: taking its locks".into(),
            Life::Starting { stage: StartStage::Spawning, .. } => "starting: it has its locks".into(),
            Life::Running { since, .. } => {
                format!("running for {}", words::duration(now.boot.since(since.boot)))
            }
            Life::Held { since, .. } => {
                format!("held by a terminal for {}", words::duration(now.boot.since(since.boot)))
            }
            Life::Stopping { since, goal, .. } => {
                let long = now.boot.since(since.boot);
                let since = if long.as_secs() > 0 {
                    format!(" for {}", words::duration(long))
                } else {
                    String::new()
                };
                format!("stopping{since}: {}", self.stopping_because(*goal))
            }
            Life::Backoff { reason, refused, holder, .. } => {
                format!("waiting: {}", self.waiting(*reason, refused.as_deref(), holder.as_deref(), now))
            }
            Life::Blocked { holder, on } => {
                let blocked = blocked(holder.as_deref(), *on, now);
                let more = matches!(on, BlockedOn::VendorLock { .. }) && self.budgets.tried;
                let more = if more && self.inbox.queued() > 0 { START_NOW } else { "" };
                format!("{blocked}{more}")
            }
            Life::Stopped if self.spec.mode == Mode::Once && self.runs.count > 0 => {
                format!("{}; `start` runs it again", self.ran_once())
            }
            Life::Stopped => "stopped by a person; `start` runs it again".into(),
            Life::Failed { cause } => {
                format!("failed: {}; {}", self.fail_cause(cause), self.what_helps(cause))
            }
            Life::Archived { .. } => "archived: kept as a record; `restore` brings it back".into(),
        }
    }

    fn stopping_because(&self, goal: Goal) -> &'static str {
        match goal {
            Goal::Stop => "a person stopped it",
            Goal::Restart => "a person restarted it",
            Goal::Park => "it is not needed",
            Goal::Drain => "it is over its memory limit",
            Goal::Takeover => "a terminal takes it over",
            Goal::Archive => "it goes to the archive",
            Goal::Down if self.live.closing => "the daemon is going down",
            Goal::Down => "it was to end with the daemon before this one",
            Goal::Watchdog => "its watchdog was silent",
            Goal::Yield => "its vendor session is held by another process",
            Goal::Lost => "its agent opened another conversation",
        }
    }

    fn idle_because(&self, since: IdleSince) -> Cow<'static, str> {
        match (since, self.spec.mode) {
            (IdleSince::Created, _) => "not needed yet".into(),
            (IdleSince::Parked, _) => "parked, because it was not needed for its idle time".into(),
            (IdleSince::NotNeeded, _) => match self.last_exit() {
                Some(exit) => format!("its last run {exit}; another is not needed").into(),
                None => "its run has ended and another is not needed".into(),
            },
            (IdleSince::Restored, Mode::OnDemand) => "restored from the archive".into(),
            (IdleSince::Restored, Mode::Always | Mode::Once) => {
                "restored from the archive; `start` runs it".into()
            }
            (IdleSince::DaemonDown, _) => "parked while the daemon was down".into(),
        }
    }

    fn ran_once(&self) -> String {
        match self.last_exit() {
            Some(exit) if exit.asked == Asked::ToEnd => format!("stopped by a person: its one run {exit}"),
            Some(exit) => format!("stopped: its one run {exit}"),
            None => "stopped: its one run is over".into(),
        }
    }

    /// Returns what a wait is for and when it ends.
    fn waiting(
        &self,
        reason: WaitReason,
        refused: Option<&StartRefused>,
        holder: Option<&HolderSeen>,
        now: Now,
    ) -> String {
        let last = || self.last_exit().map(|exit| format!(" (last: {exit})")).unwrap_or_default();
        let (what, joint) = match reason {
            WaitReason::Crash | WaitReason::OutOfMemory => (self.crashed(self.budgets.crashes), ", "),
            WaitReason::CleanRestartBudgetExceeded => {
                (format!("it ended cleanly too often in a short time{}", last()), "; ")
            }
            WaitReason::MemoryDrainLoop => ("it met its memory limit too often".into(), "; "),
            WaitReason::Contended => match holder {
                Some(holder) => (format!("{}{}", held_by(holder, now), last()), "; "),
                None => (format!("another process holds what it needs{}", last()), "; "),
            },
            WaitReason::UsageLimit => (format!("its usage limit has to reset{}", last()), "; "),
            WaitReason::StartFailed => {
                let text = refused.map_or("the system refused", |refused| refused.text.as_str());
                (format!("it could not be started: {text}"), "; ")
            }
        };
        let exits = if holder.is_some() { ", or when that process exits" } else { "" };
        let more = self.budgets.hurried && self.inbox.queued() > 0;
        let more = if more { START_NOW } else { "" };
        match self.what_is_next(now.boot) {
            Some(next) => format!("{what}{joint}{next}{exits}{more}"),
            None => what,
        }
    }

    /// Returns how it ended last and how many crashes there were in a row.
    fn crashed(&self, crashes: u32) -> String {
        let last = self.last_exit().map(|exit| format!("{exit}; ")).unwrap_or_default();
        match crashes {
            0 | 1 => format!("{last}crashed once"),
            crashes => format!("{last}crashed {crashes} times in a row"),
        }
    }

    /// Returns what ends a failure. A session keeps the PATH that it was created with.
    fn what_helps(&self, cause: &FailCause) -> String {
        let again = match self.budgets.tried {
            true => "`start` tries again",
            false => "`start` or a message tries again",
        };
        match cause {
            FailCause::CannotStart(CannotStart::ProgramMissing { program }) if !program.contains('/') => {
                format!(
                    "install it, or run `pinfold set S --env PATH` in a shell that finds it; then {again}"
                )
            }
            FailCause::CannotStart(_)
            | FailCause::Ended(_)
            | FailCause::CrashHardLimit { .. }
            | FailCause::ConversationLost
            | FailCause::Interrupted => again.to_owned(),
        }
    }

    fn fail_cause(&self, cause: &FailCause) -> String {
        match (cause, self.last_exit()) {
            (FailCause::Ended(_), Some(exit)) => exit.to_string(),
            (FailCause::Ended(verdict), None) => format!("its last run ended as {}", verdict.word()),
            (FailCause::CrashHardLimit { crashes }, _) => self.crashed(*crashes),
            (FailCause::CannotStart(cause), _) => format!("cannot start: {cause}"),
            (FailCause::Interrupted, _) => "its one run was cut short".into(),
            (FailCause::ConversationLost, _) => "its conversation cannot be continued".into(),
        }
    }

    fn who_is_there(&self) -> Option<String> {
        let running = matches!(self.life, Life::Running { .. } | Life::Held { .. });
        match self.live.consumers.len() {
            _ if !running => None,
            0 => None,
            1 => Some("a consumer is connected".into()),
            many => Some(format!("{many} consumers are connected")),
        }
    }

    /// Returns whether its terminal program runs beside it, or why not yet.
    fn who_visits(&self) -> Option<String> {
        match self.guest_here().map(|guest| guest.stage) {
            Some(GuestStage::Here { pid }) => Some(format!("its terminal program runs beside it, pid {pid}")),
            Some(GuestStage::Asked) => Some("its terminal program is being started beside it".into()),
            Some(GuestStage::Gone { .. }) | None if self.awaits_guest() => {
                Some("a terminal waits until the agent is ready".into())
            }
            Some(GuestStage::Gone { .. }) | None => None,
        }
    }

    fn what_waits(&self) -> Option<String> {
        if self.inbox.in_flight().is_some() {
            return Some("a turn is under way".into());
        }
        match self.inbox.queued() {
            0 => None,
            1 => Some("a message is queued".into()),
            many => Some(format!("{many} messages are queued")),
        }
    }

    fn what_is_next(&self, now: Boot) -> Option<String> {
        let deadline = self.next_deadline()?;
        let wait = words::duration(deadline.at.since(now));
        Some(match deadline.what {
            Upcoming::Restart => format!("next run in {wait}"),
            Upcoming::Retry => format!("next try in {wait}, or when the holder goes"),
            Upcoming::Park => format!("parks in {wait} unless it is needed"),
            Upcoming::TakeoverDeadline => format!("a takeover waits {wait} more for the turn to end"),
            Upcoming::Watchdog => format!("its watchdog must be fed within {wait}"),
            Upcoming::Reset => format!("goes on in {wait}"),
            Upcoming::Signal => format!("it was asked to leave, and is sent the stop signal in {wait}"),
            Upcoming::NotNeeded => format!("gives up in {wait} unless it is needed"),
        })
    }
}

fn blocked(holder: Option<&HolderSeen>, on: BlockedOn, now: Now) -> String {
    let Some(holder) = holder else {
        return match on {
            BlockedOn::OurLock => "blocked: another process holds its lock".into(),
            BlockedOn::VendorLock { .. } => {
                "blocked: the vendor's own lock is held by an unknown process".into()
            }
        };
    };
    let mut sentence = format!("blocked: {}", held_by(holder, now));
    // It took no lock of ours, so no verb of ours ends it.
    if holder.session.is_none() && holder.resource.starts_with("vendor:") {
        sentence.push_str("; it goes on when that program leaves the conversation, which only you can end");
    }
    sentence
}

/// Returns which process holds what.
fn held_by(holder: &HolderSeen, now: Now) -> String {
    let mut sentence = format!("`{}` is held by ", holder.resource);
    match (&holder.session, holder.pid) {
        (Some(session), _) => sentence.push_str(&format!("session `{session}`")),
        (None, Some(_)) => sentence.push_str("another program"),
        (None, None) => sentence.push_str("an unknown process"),
    }
    let mut facts = Vec::new();
    facts.extend(holder.pid.map(|pid| format!("pid {pid}")));
    facts.extend(holder.command.clone());
    facts.extend(holder.since.map(|since| format!("for {}", words::duration(since.until(now.wall)))));
    if !facts.is_empty() {
        sentence.push_str(&format!(" ({})", facts.join(", ")));
    }
    sentence
}
