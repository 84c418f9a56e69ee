//! Connected clients: their coming may wake a session, their going may end a takeover.

use super::draft::Draft;
use crate::decision::{Action, Change, Record, TakeoverEnd};
use crate::event::ConsumerKind;
use crate::ids::ConsumerId;
use crate::life::{Goal, Life, Purpose, StartStage};
use crate::why::{TakeoverStep, Why};

impl Draft<'_> {
    pub(super) fn consumer_joined(&mut self, consumer: ConsumerId, kind: ConsumerKind) -> Why {
        if self.session.live.consumers.get(&consumer) == Some(&kind) {
            return Why::Stale;
        }
        self.change(Change::Joined(consumer, kind));
        self.change(Change::LastConsumer(self.now.wall));
        self.record(Record::ConsumerJoined { consumer });
        Why::Noted
    }

    pub(super) fn consumer_left(&mut self, consumer: ConsumerId) -> Why {
        let abandoned = self.abandon_takeover(consumer);
        if !self.session.live.consumers.contains_key(&consumer) {
            return abandoned.unwrap_or(Why::Stale);
        }
        self.change(Change::Left(consumer));
        self.change(Change::LastConsumer(self.now.wall));
        self.record(Record::ConsumerLeft { consumer });
        abandoned.unwrap_or(Why::Noted)
    }

    /// Calls off a takeover whose client has gone; the headless run goes on or comes back.
    fn abandon_takeover(&mut self, consumer: ConsumerId) -> Option<Why> {
        self.session.live.takeover.filter(|takeover| takeover.consumer == consumer)?;
        self.end_takeover(TakeoverEnd::CallerGone);
        match self.session.life {
            Life::Starting { stage: StartStage::Reserving, purpose: Purpose::Interactive(then), .. } => {
                self.act(Action::Release);
                self.hand_back(then);
            }
            Life::Starting { stage: StartStage::Spawning, purpose: Purpose::Interactive(_), .. } => {
                self.end_run(Goal::Takeover, None);
            }
            // A headless run goes on; one that was asked to end for the takeover comes back if it is needed.
            Life::Starting { .. }
            | Life::Running { .. }
            | Life::Stopping { .. }
            | Life::Idle { .. }
            | Life::Held { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => {}
        }
        Some(Why::Takeover(TakeoverStep::CallerGone))
    }
}
