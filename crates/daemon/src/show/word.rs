//! Translates the words of the core and the store into those of the API: what the daemon decides by has its
//! own names, and what it shows does not change with them.

use pinfold_api::word;
use pinfold_core::session::Upcoming;
use pinfold_core::talk::{Activity, RequestKind};
use pinfold_core::{Mode, State, Verdict};
use pinfold_store::MessageState;

pub(super) fn state(state: State) -> word::State {
    match state {
        State::Idle => word::State::Idle,
        State::Starting => word::State::Starting,
        State::Running => word::State::Running,
        State::Stopping => word::State::Stopping,
        State::Backoff => word::State::Backoff,
        State::Blocked => word::State::Blocked,
        State::Held => word::State::Held,
        State::Stopped => word::State::Stopped,
        State::Failed => word::State::Failed,
        State::Archived => word::State::Archived,
    }
}

pub(crate) fn mode(mode: Mode) -> word::Mode {
    match mode {
        Mode::OnDemand => word::Mode::OnDemand,
        Mode::Always => word::Mode::Always,
        Mode::Once => word::Mode::Once,
    }
}

pub(super) fn verdict(verdict: Verdict) -> word::Verdict {
    match verdict {
        Verdict::Clean => word::Verdict::Clean,
        Verdict::Drained => word::Verdict::Drained,
        Verdict::Contended => word::Verdict::Contended,
        Verdict::Hopeless => word::Verdict::Hopeless,
        Verdict::Limited => word::Verdict::Limited,
        Verdict::OutOfMemory => word::Verdict::OutOfMemory,
        Verdict::Crash => word::Verdict::Crash,
    }
}

pub(super) fn activity(activity: Activity) -> word::Activity {
    match activity {
        Activity::Working => word::Activity::Working,
        Activity::Waiting => word::Activity::Waiting,
        Activity::Idle => word::Activity::Idle,
        Activity::Limited => word::Activity::Limited,
        Activity::Unknown => word::Activity::Unknown,
    }
}

pub(super) fn request_kind(kind: RequestKind) -> word::RequestKind {
    match kind {
        RequestKind::Permission => word::RequestKind::Permission,
        RequestKind::Question => word::RequestKind::Question,
    }
}

pub(super) fn upcoming(upcoming: Upcoming) -> word::Upcoming {
    match upcoming {
        Upcoming::Restart => word::Upcoming::Restart,
        Upcoming::Retry => word::Upcoming::Retry,
        Upcoming::Park => word::Upcoming::Park,
        Upcoming::TakeoverDeadline => word::Upcoming::TakeoverDeadline,
        Upcoming::Watchdog => word::Upcoming::Watchdog,
        Upcoming::NotNeeded => word::Upcoming::Idle,
        Upcoming::Signal => word::Upcoming::Signal,
        Upcoming::Reset => word::Upcoming::Reset,
    }
}

pub(super) fn message_state(state: MessageState) -> word::MessageState {
    match state {
        MessageState::Queued => word::MessageState::Queued,
        MessageState::Delivered => word::MessageState::Delivered,
        MessageState::Done => word::MessageState::Done,
        MessageState::Failed => word::MessageState::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::session::STATES;

    #[test]
    fn a_state_is_told_as_it_is_asked_for() {
        for known in STATES {
            assert_eq!(state(known).word(), known.word());
        }
    }
}
