//! Messages: queued in order, delivered one at a time, settled once.

use super::draft::Draft;
use crate::budgets::{Budgets, Pause, PauseAfter};
use crate::decision::{Action, Answer, Change, Record, Refusal, Wakes};
use crate::event::{MessageEvent, TurnEnd};
use crate::ids::{MessageId, RunNumber};
use crate::inbox::{Cost, InFlight, MOST_QUEUED, MessageChange, MessageFailure, Read};
use crate::life::{BlockedOn, Goal, Life, Purpose};
use crate::rules::WaitReason;
use crate::session::Session;
use crate::talk::Dialog;
use crate::why::{MessageStep, Why};

impl Draft<'_> {
    pub(super) fn message(&mut self, event: &MessageEvent) -> Why {
        match event {
            MessageEvent::Sent { known: Some(known), .. } => self.message_known(*known),
            MessageEvent::Sent { message, key, known: None } => self.message_sent(*message, key.as_deref()),
            MessageEvent::Taken { run, message } => self.message_taken(*run, *message),
            MessageEvent::TurnEnded { run, message, how } => self.turn_ended(*run, *message, *how),
            MessageEvent::Cancelled { message } => self.message_cancelled(*message),
            MessageEvent::Undeliverable { message } => self.message_undeliverable(*message),
            MessageEvent::Retried { message, read } => self.message_retried(*message, *read),
        }
    }

    fn message_known(&mut self, known: MessageId) -> Why {
        self.answer(Answer::Queued { message: known, wakes: Wakes::Yes });
        Why::Message(MessageStep::Known)
    }

    fn message_sent(&mut self, message: MessageId, key: Option<&str>) -> Why {
        if self.session.life.is_retired() {
            return self.refuse(Refusal::Archived);
        }
        if self.session.inbox.queued() >= MOST_QUEUED {
            return self.refuse(Refusal::InboxFull);
        }
        self.step(MessageChange::Queued { message, key: key.map(str::to_owned) });
        self.record(Record::MessageQueued { message });
        let (wakes, why) = self.message_arrives();
        self.answer(Answer::Queued { message, wakes });
        why
    }

    /// A message ends a wait for one of our locks, and once in a streak of crashes a backoff. It gives a failed
    /// session one try, and one that is blocked by a lock of the vendor's; it does not wake a stopped one.
    fn message_arrives(&mut self) -> (Wakes, Why) {
        let queued = Why::Message(MessageStep::Queued);
        if self.session.live.closing {
            return (Wakes::NotWhileClosing, queued);
        }
        if self.session.live.mute {
            return (Wakes::NotWhileBlocked, queued);
        }
        self.resume_pause();
        let Budgets { hurried, tried, .. } = self.session.budgets;
        match self.session.life {
            Life::Stopped | Life::Stopping { goal: Goal::Stop, .. } => (Wakes::NotWhileStopped, queued),
            _ if self.session.is_held() => (Wakes::NotWhileHeld, queued),
            Life::Blocked { on: BlockedOn::VendorLock { .. }, .. } if tried => {
                (Wakes::NotWhileBlocked, queued)
            }
            Life::Blocked { on, .. } => {
                let tried = tried || matches!(on, BlockedOn::VendorLock { .. });
                self.note_hurry(hurried, tried);
                self.begin(Purpose::Headless);
                (Wakes::NotWhileBlocked, Why::Message(MessageStep::EndsTheWait))
            }
            Life::Backoff { .. } if hurried => (Wakes::NotInBackoff, queued),
            Life::Failed { .. } if tried => (Wakes::NotWhileFailed, queued),
            Life::Backoff { .. } => {
                self.note_hurry(true, tried);
                self.begin(Purpose::Headless);
                (Wakes::Yes, Why::Message(MessageStep::EndsTheWait))
            }
            Life::Failed { .. } => {
                self.note_hurry(hurried, true);
                self.begin(Purpose::Headless);
                (Wakes::Yes, Why::Message(MessageStep::EndsTheWait))
            }
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Archived { .. } => (Wakes::Yes, queued),
        }
    }

    /// A session whose last run failed while nothing else needed it waits now, as if it had been needed.
    fn resume_pause(&mut self) {
        let now = self.now.boot;
        let pause = self.session.budgets.pause.filter(|pause| pause.until.boot > now);
        let (Life::Idle { .. }, Some(Pause { until, after })) = (&self.session.life, pause) else { return };
        let backoff = |reason| Life::Backoff { until, reason, refused: None, holder: None };
        self.set_life(match after {
            PauseAfter::Crash => backoff(WaitReason::Crash),
            PauseAfter::OutOfMemory => backoff(WaitReason::OutOfMemory),
            PauseAfter::Contended => backoff(WaitReason::Contended),
            PauseAfter::Blocked => Life::Blocked { holder: None, on: BlockedOn::VendorLock { retry: until } },
        });
    }

    /// Gives messages back their right to end a wait and to try a failed session.
    pub(super) fn let_messages_hurry(&mut self) {
        self.note_hurry(false, false);
    }

    /// Notes which of their rights messages have used up.
    pub(super) fn note_hurry(&mut self, hurried: bool, tried: bool) {
        let before = &self.session.budgets;
        if (before.hurried, before.tried) != (hurried, tried) {
            let budgets = Budgets { hurried, tried, ..before.clone() };
            self.change(Change::Budgets(Box::new(budgets)));
        }
    }

    fn message_taken(&mut self, run: RunNumber, message: MessageId) -> Why {
        match self.turn_of(run, message) {
            Some(turn) if !turn.taken => {
                self.take(turn);
                Why::Message(MessageStep::Taken)
            }
            Some(_) | None => Why::Stale,
        }
    }

    fn take(&mut self, turn: InFlight) {
        self.step(MessageChange::Taken { message: turn.message });
        self.turn_begins();
        self.record(Record::MessageDelivered { message: turn.message, attempt: turn.tries + 1 });
    }

    fn turn_ended(&mut self, run: RunNumber, message: MessageId, how: TurnEnd) -> Why {
        let Some(turn) = self.turn_of(run, message) else { return Why::Stale };
        if !turn.taken {
            self.take(turn);
        }
        // A stop costs no try, even if an earlier daemon began it. A turn that a person interrupted before
        // the stop is over for good.
        let stopping = matches!(self.session.life, Life::Stopping { .. });
        let cut_short = self.taking_over() || stopping && !self.session.interrupted;
        if self.session.interrupted {
            self.change(Change::Interrupted(false));
        }
        self.turn_took();
        let why = match how {
            TurnEnd::Answered => {
                self.step(MessageChange::Done { message });
                self.record(Record::MessageDone { message });
                MessageStep::Done
            }
            TurnEnd::Interrupted if cut_short => {
                self.step(MessageChange::Requeued { message, cost: Cost::Nothing, read: Read::Maybe });
                MessageStep::Requeued
            }
            TurnEnd::Crossed | TurnEnd::Refused => {
                self.step(MessageChange::Requeued { message, cost: Cost::Nothing, read: Read::Maybe });
                MessageStep::Requeued
            }
            TurnEnd::Interrupted => self.fail_message(message, MessageFailure::Interrupted),
            TurnEnd::Failed => self.fail_message(message, MessageFailure::TurnFailed),
        };
        self.withdraw_all();
        self.turn_is_over();
        self.turn_is_over_for_good();
        Why::Message(why)
    }

    fn message_cancelled(&mut self, message: MessageId) -> Why {
        if !self.session.inbox.waits(message) {
            return self.refuse(Refusal::NoSuchMessage);
        }
        self.fail_message(message, MessageFailure::Cancelled);
        self.answer(Answer::Done);
        Why::Message(MessageStep::Cancelled)
    }

    fn message_undeliverable(&mut self, message: MessageId) -> Why {
        if !self.session.inbox.waits(message) {
            return Why::Stale;
        }
        Why::Message(self.fail_message(message, MessageFailure::TurnFailed))
    }

    fn message_retried(&mut self, message: MessageId, read: Read) -> Why {
        let current = self.session.inbox.in_flight().is_some_and(|turn| turn.message == message);
        if current || self.session.inbox.waits(message) {
            self.answer(Answer::Already);
            return Why::Stale;
        }
        if self.session.life.is_retired() {
            return self.refuse(Refusal::Archived);
        }
        self.step(MessageChange::Retried { message, read });
        let (wakes, _) = self.message_arrives();
        self.answer(Answer::Queued { message, wakes });
        Why::Message(MessageStep::Retried)
    }

    fn fail_message(&mut self, message: MessageId, why: MessageFailure) -> MessageStep {
        self.step(MessageChange::Failed { message, why });
        self.record(Record::MessageFailed { message, why });
        MessageStep::Failed
    }

    /// Returns the turn of this message, if the live run has it.
    fn turn_of(&self, run: RunNumber, message: MessageId) -> Option<InFlight> {
        self.session.live_run().filter(|live| *live == run)?;
        self.session.inbox.in_flight().filter(|turn| turn.message == message)
    }

    /// Handles a run that ended during a turn: the message is tried again or has used up its tries.
    pub(super) fn turn_cut_short(&mut self, cost: Cost, read: Read) {
        let Some(turn) = self.session.inbox.in_flight() else { return };
        let message = turn.message;
        if self.session.interrupted {
            self.fail_message(message, MessageFailure::Interrupted);
            return;
        }
        self.turn_took();
        let bound = self.session.spec.policy.message_tries.max(1);
        if read == Read::Never {
            self.step(MessageChange::Requeued { message, cost: Cost::Nothing, read });
        } else if turn.taken && cost == Cost::OneTry && turn.tries >= bound {
            self.fail_message(message, MessageFailure::TriesUsedUp);
        } else {
            self.step(MessageChange::Requeued { message, cost, read });
        }
    }

    /// Hands over the next message if an agent is ready to take it.
    pub(super) fn deliver_next(&mut self) {
        let Life::Running { run, .. } = self.session.life else { return };
        if self.session.live.takeover.is_some() {
            return;
        }
        // An account or a budget does not allow it yet.
        if self.session.is_held() {
            return;
        }
        // Anything typed into an open dialog would answer it.
        if self.session.dialog() != Dialog::None {
            return;
        }
        // A run made for one message ends with it: the next message waits for the next run.
        if self.session.spec.run_per_message && self.session.live.served == Some(run) {
            return;
        }
        let Some(next) = self.session.inbox.deliverable() else { return };
        self.step(MessageChange::Delivering { message: next.message });
        self.deliver_again(run);
    }

    /// Hands over the message whose turn it is, once more if the daemon may have died while it did so.
    pub(super) fn deliver_again(&mut self, run: RunNumber) {
        let Some(turn) = self.session.inbox.in_flight() else { return };
        let attempt = turn.tries + u32::from(!turn.taken);
        let InFlight { message, delivery, repeated, .. } = turn;
        self.act(Action::Deliver { run, message, attempt, delivery, repeated });
    }

    fn step(&mut self, step: MessageChange) {
        self.change(Change::Message(step));
    }
}

impl Session {
    /// Applies one step of a message, and what it means for the run and the conversation.
    pub(crate) fn message_steps(&mut self, step: &MessageChange) {
        match step {
            MessageChange::Delivering { .. } => self.live.served = self.live_run(),
            MessageChange::Done { .. } => self.talk.answers(),
            MessageChange::Queued { .. }
            | MessageChange::Taken { .. }
            | MessageChange::Requeued { .. }
            | MessageChange::Failed { .. }
            | MessageChange::Retried { .. } => {}
        }
        self.inbox.apply(step);
    }
}
