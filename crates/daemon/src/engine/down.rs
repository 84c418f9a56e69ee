//! The end of the daemon: agents are stopped, those that do not answer are killed, and those that cannot be
//! killed are named.

use super::unended::NO_ANSWER;
use super::{Closing, Engine};
use crate::caller::By;
use crate::crash;
use crate::engine::input::{AgentsOnDown, Goodbye, LoopInput};
use crate::engine::session::Tracked;
use crate::ports::locks::HolderEnded;
use pinfold_api::object::Left;
use pinfold_core::unended::Unended;
use pinfold_core::{Event, EventKind};
use pinfold_store::{Batch, Facts, SessionId};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// What is left of a run whose shim was killed is gone within this time, unless something is wrong.
const SETTLES: Duration = Duration::from_secs(3);
/// How often a tree that does not end is killed again before it is left.
const ENDINGS: u32 = 2;

impl Engine {
    pub(super) fn go_down(&mut self, agents: AgentsOnDown, by: Option<Arc<By>>, reply: Option<Goodbye>) {
        self.closed_by = by.or(self.closed_by.take());
        self.handed_over = agents == AgentsOnDown::HandedOver;
        crash::point("down.before");
        let replies = match std::mem::replace(&mut self.closing, Closing::No) {
            Closing::No => Vec::new(),
            Closing::Waiting(replies) | Closing::Over(replies) => replies,
        };
        let replies: Vec<_> = replies.into_iter().chain(reply).collect();
        self.closing = match agents {
            AgentsOnDown::Kept | AgentsOnDown::HandedOver => Closing::Over(replies),
            AgentsOnDown::Stopped => Closing::Waiting(replies),
        };
        if agents == AgentsOnDown::Stopped {
            match self.damaged.is_empty() {
                true => self.end_strangers(),
                // Its shim listens a moment after the daemon let it go: what is found then is ended.
                false => self.look_for_strangers(),
            }
            let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
            for id in ids {
                self.ask_down(id);
                self.remind_of_down(id);
            }
        }
    }

    /// Asks a session to come to rest; one that recovery has not looked at yet is asked after that.
    pub(super) fn ask_down(&mut self, id: SessionId) {
        let by = self.closed_by.as_ref().map(|by| by.words());
        let (event, facts) = (Box::new(Event::DownAsked), Box::new(Facts { by, ..Facts::default() }));
        self.take(LoopInput::Happened { id, event, facts, reply: None });
    }

    /// A run has its grace to end; then its shim has to answer.
    fn remind_of_down(&self, id: SessionId) {
        let Some(tracked) = self.sessions.get(&id).filter(|tracked| tracked.session.live_run().is_some())
        else {
            return;
        };
        // A run that was already unended has had that time.
        let grace = match tracked.session.unended() {
            Some(_) => Duration::ZERO,
            None => tracked.session.spec().policy.stop_grace,
        };
        self.look_at_end(id, grace + NO_ANSWER);
    }

    fn look_at_end(&self, id: SessionId, after: Duration) {
        let (handle, at) = (self.handle.clone(), self.ports.clock.awake() + after);
        self.ports.clock.remind(at, Box::new(move |()| handle.tell(LoopInput::DownOverdue { id })));
    }

    /// A session had long enough to come to rest for the daemon's end.
    pub(super) fn down_overdue(&mut self, id: SessionId) {
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.farewell.overdue = true;
            self.see_to_end(id);
        }
    }

    /// Ends a run that has had long enough, as soon as it is known what is in the way.
    pub(super) fn see_to_end(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id).filter(|tracked| tracked.farewell.overdue) else {
            return;
        };
        if tracked.session.live_run().is_none() {
            tracked.farewell.overdue = false;
            return;
        }
        match (tracked.session.unended(), &tracked.shim) {
            // Its shim keeps it, holds the lock, and records the end; the next daemon finds both.
            (Some(by @ Unended::Survivors { .. }), Some(_)) => tracked.farewell.left = Some(by.clone()),
            // The stop is watched: what is in its way is reported in due time.
            (None, Some(_)) => return,
            (Some(_), _) | (None, None) => self.end_mute(id),
        }
        if let Some(tracked) = self.sessions.get_mut(&id) {
            tracked.farewell.overdue = false;
        }
    }

    /// A shim that does not answer cannot be asked: it is killed with its tree.
    fn end_mute(&mut self, id: SessionId) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        warn!(session = tracked.name, "its shim does not answer: its tree is ended");
        tracked.farewell.endings += 1;
        let (name, handle) = (tracked.name.clone(), self.handle.clone());
        let told = move |ended| handle.tell(LoopInput::HolderEnded { id, ended });
        self.ports.locks.end_holder(name, Box::new(told));
    }

    pub(super) fn holder_ended(&mut self, id: SessionId, ended: HolderEnded) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        match ended {
            HolderEnded::Still(by) => tracked.farewell.left = Some(by),
            HolderEnded::Gone if tracked.farewell.endings < ENDINGS => self.look_at_end(id, SETTLES),
            HolderEnded::Gone => {
                let shim = tracked.shim.as_ref().map(|shim| shim.pid);
                tracked.farewell.left = Some(Unended::Silent { shim });
            }
        }
    }

    /// Whether nothing of a session is under way, so that the daemon may exit.
    pub(super) fn at_rest(&self, tracked: &Tracked) -> bool {
        !self.early.contains_key(&tracked.id) && tracked.at_rest(self.health.holds_up())
    }

    pub(super) fn end_if_at_rest(&mut self) {
        if !matches!(self.closing, Closing::Waiting(_)) || self.strangers > 0 {
            return;
        }
        let rests = |tracked: &Tracked| self.at_rest(tracked) || tracked.farewell.left.is_some();
        if self.sessions.values().all(|tracked| rests(tracked))
            && let Closing::Waiting(replies) = &mut self.closing
        {
            self.closing = Closing::Over(std::mem::take(replies));
        }
    }

    /// Writes the last event and answers the clients that asked for the end.
    pub(super) fn say_goodbye(&mut self) {
        crash::point("down.unsaid");
        let left: Vec<Left> = self.sessions.values().filter_map(|tracked| self.left(tracked)).collect();
        for left in &left {
            warn!(session = left.session, "it is left behind: {}", left.why);
        }
        let mut batch = Batch::new();
        let mut event = self.daemon_event(EventKind::DaemonStopped, "the daemon goes down");
        event.data.extend(self.closed_by.as_ref().map(|by| ("by".to_owned(), by.words())));
        if !left.is_empty() {
            event.data.insert("left".into(), serde_json::to_value(&left).unwrap_or_default());
        }
        batch.event(event);
        // The loop has ended, and the clients hear of it only now: blocking is fine here. If it cannot be
        // written now, it is not waited for: the next daemon finds the ends in the exit records.
        if let Err(error) = self.ports.journal.commit_last(batch) {
            warn!("the last event was not written: {error}");
        }
        crash::point("down.said");
        if let Closing::Over(replies) = std::mem::replace(&mut self.closing, Closing::No) {
            for reply in replies {
                _ = reply.send(left.clone());
            }
        }
    }

    /// A session that should have stopped and is still running when the daemon ends.
    fn left(&self, tracked: &Tracked) -> Option<Left> {
        let by = tracked.farewell.left.as_ref().filter(|_| !self.at_rest(tracked))?;
        Some(Left { session: tracked.name.clone(), why: by.to_string(), pids: by.pids() })
    }
}
