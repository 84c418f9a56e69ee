//! `why S`: what is, why, and what comes next, in a sentence.

use crate::life::{BlockedOn, FailCause, Goal, HolderSeen, IdleSince, Life, Stage};
use crate::policy::Mode;
use crate::rules::WaitReason;
use crate::session::{Session, Upcoming};
use crate::time::{Boot, Now};
use crate::words;

impl Session {
    /// Says what is, why, and what comes next and when.
    #[must_use]
    pub fn explain(&self, now: Now) -> String {
        let mut sentence = self.what_is(now);
        match &self.live.unended {
            Some(by) => sentence.push_str(&format!("; {by}; {}", by.advice("unlock --kill"))),
            None if self.live.mute => sentence.push_str("; its shim holds the lock and does not answer"),
            None => {}
        }
        for part in
            [self.who_is_there(), self.what_waits(), self.what_is_next(now.boot)].into_iter().flatten()
        {
            sentence.push_str("; ");
            sentence.push_str(&part);
        }
        sentence
    }

    fn what_is(&self, now: Now) -> String {
        match &self.life {
            Life::Idle { since } => format!("idle: {}", self.idle_because(*since)),
            Life::Starting { stage: Stage::Reserving, .. } => "starting: taking its locks".into(),
            Life::Starting { stage: Stage::Spawning, .. } => "starting: its locks are taken".into(),
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
            Life::Backoff { reason, .. } => self.waiting_because(*reason),
            Life::Blocked { holder, on } => blocked(holder.as_deref(), *on, now),
            Life::Stopped if self.spec.mode == Mode::Once && self.runs.count > 0 => {
                "stopped: its one run is over; `start` runs it again".into()
            }
            Life::Stopped => "stopped by a person; `start` runs it again".into(),
            Life::Failed { cause } => {
                format!("failed: {}; `start` or a message tries again", fail_cause(cause))
            }
            Life::Archived { .. } => "archived: kept as a record; `restore` brings it back".into(),
        }
    }

    fn stopping_because(&self, goal: Goal) -> &'static str {
        match goal {
            Goal::Stop => "a person stopped it",
            Goal::Restart => "a person restarted it",
            Goal::Park => "nobody needs it",
            Goal::Drain => "it is over its memory limit",
            Goal::Takeover => "a terminal takes it over",
            Goal::Archive => "it goes to the archive",
            Goal::Down if self.live.closing => "the daemon is going down",
            Goal::Down => "it was to end with the daemon before this one",
            Goal::Watchdog => "its watchdog was silent",
            Goal::Yield => "its vendor session is held by somebody else",
        }
    }

    fn idle_because(&self, since: IdleSince) -> &'static str {
        match (since, self.spec.mode) {
            (IdleSince::Created, _) => "nobody has needed it yet",
            (IdleSince::Parked, _) => "parked, because nobody needed it for its idle time",
            (IdleSince::NotNeeded, _) => "its run has ended and nobody needs another",
            (IdleSince::Restored, Mode::OnDemand) => "restored from the archive",
            (IdleSince::Restored, Mode::Always | Mode::Once) => "restored from the archive; `start` runs it",
            (IdleSince::DaemonDown, _) => "parked while the daemon was down",
        }
    }

    fn waiting_because(&self, reason: WaitReason) -> String {
        let crashes = self.budgets.crashes;
        match reason {
            WaitReason::Crash if crashes == 1 => "waiting after a crash".into(),
            WaitReason::Crash => format!("waiting after {crashes} crashes in a streak"),
            WaitReason::OutOfMemory => "waiting: the kernel killed it for memory".into(),
            WaitReason::CleanRestartBudgetExceeded => {
                "waiting: it ended cleanly too often in a short time".into()
            }
            WaitReason::MemoryDrainLoop => "waiting: it met its memory limit too often".into(),
            WaitReason::Contended => "waiting: somebody else holds what it needs".into(),
            WaitReason::UsageLimit => "waiting for its usage limit to reset".into(),
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
            Upcoming::Park => format!("parks in {wait} unless somebody needs it"),
            Upcoming::TakeoverDeadline => format!("a takeover waits {wait} more for the turn to end"),
            Upcoming::Watchdog => format!("its watchdog must be fed within {wait}"),
            Upcoming::NotNeeded => format!("gives up in {wait} unless somebody needs it"),
        })
    }
}

fn blocked(holder: Option<&HolderSeen>, on: BlockedOn, now: Now) -> String {
    let Some(holder) = holder else {
        return match on {
            BlockedOn::OurLock => "blocked: somebody else holds its lock".into(),
            BlockedOn::VendorLock { .. } => {
                "blocked: the vendor's own lock is held by somebody unknown".into()
            }
        };
    };
    let mut sentence = format!("blocked: `{}` is held by ", holder.resource);
    match (&holder.session, holder.pid) {
        (Some(session), _) => sentence.push_str(&format!("session `{session}`")),
        (None, Some(_)) => sentence.push_str("another program"),
        (None, None) => sentence.push_str("somebody unknown"),
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

fn fail_cause(cause: &FailCause) -> String {
    match cause {
        FailCause::Ended(verdict) => format!("its last run ended as {}", verdict.word()),
        FailCause::CrashHardLimit { crashes: 1 } => "it crashed".into(),
        FailCause::CrashHardLimit { crashes } => format!("it crashed {crashes} times in a streak"),
        FailCause::CannotStart(cause) => cause.to_string(),
        FailCause::Interrupted => "its one run was cut short".into(),
    }
}
