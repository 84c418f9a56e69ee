//! A decision in the making: collects changes and actions, and applies each change as it is made.

use crate::decision::{Action, Answer, Change, Decision, InForce, Record, TakeoverEnd};
use crate::event::Shim;
use crate::life::{Goal, IdleSince, Life, Purpose, StartStage};
use crate::policy::{Mode, Spec};
use crate::rules::memory::MemoryWatch;
use crate::session::{Runs, Session};
use crate::time::Now;
use crate::why::Why;

pub(crate) struct Draft<'a> {
    pub(super) session: &'a mut Session,
    pub(super) now: Now,
    changes: Vec<Change>,
    actions: Vec<Action>,
    answer: Option<Answer>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(session: &'a mut Session, now: Now) -> Draft<'a> {
        Draft { session, now, changes: Vec::new(), actions: Vec::new(), answer: None }
    }

    pub(super) fn finish(self, why: Why) -> Decision {
        Decision { changes: self.changes, actions: self.actions, why, answer: self.answer }
    }

    /// Applies and records one change; a session changes in no other way.
    pub(super) fn change(&mut self, change: Change) {
        self.session.apply(&change);
        self.changes.push(change);
    }

    pub(super) fn record(&mut self, record: Record) {
        self.changes.push(Change::Record(record));
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    pub(super) fn refuse(&mut self, refusal: crate::decision::Refusal) -> Why {
        self.answer(Answer::Refused(refusal));
        Why::Refused
    }

    pub(super) fn set_life(&mut self, life: Life) {
        self.change(Change::Life(life));
    }

    /// Begins a new run: under the shim that still stands and fits, or by taking the locks first.
    pub(super) fn begin(&mut self, purpose: Purpose) {
        self.forget_holder();
        self.release_unfit();
        let run = self.session.runs.last.next();
        self.change(Change::Runs(Runs { last: run, ..self.session.runs }));
        let (stage, action) = match self.session.shim {
            Shim::Standing => (StartStage::Spawning, Action::Spawn { run, purpose }),
            Shim::Absent => (StartStage::Reserving, Action::Reserve { run, purpose }),
        };
        self.set_life(Life::Starting { run, stage, purpose });
        self.act(action);
    }

    /// Settles a run that is over for good, and puts a changed definition into force. Numbers never go back:
    /// when an older run that a shim still kept ends, the later ones stay settled.
    pub(super) fn settle(&mut self, runs: Runs) {
        let settled = runs.settled.max(self.session.runs.settled);
        self.change(Change::Runs(Runs { settled, ..runs }));
        if let Some(spec) = self.session.next_spec.clone() {
            self.put_in_force(spec);
        }
    }

    /// Lets a definition count from now on. If it names another conversation, the learned one is forgotten.
    pub(super) fn put_in_force(&mut self, spec: Box<Spec>) {
        let chosen = spec.conversation != self.session.spec.conversation;
        self.change(Change::Spec(spec, InForce::Now));
        let (done, _) = self.session.inbox.settled();
        if !chosen || !self.session.talk.has_conversation(done) {
            return;
        }
        let was_named = self.session.talk.vendor().is_some();
        self.change(Change::VendorForgotten);
        if was_named {
            self.record(Record::VendorSession { run: self.session.runs.last, id: None });
        }
    }

    /// Ends a wait: its holder is no longer watched.
    pub(super) fn forget_holder(&mut self) {
        if self.session.life.awaits_holder() {
            self.act(Action::ForgetHolder);
        }
    }

    /// Enters a state without a run: forgets what was waited for and gives the locks back.
    pub(super) fn rest(&mut self, life: Life) {
        self.end_takeover(TakeoverEnd::Overruled);
        self.forget_holder();
        self.release();
        self.set_life(life);
    }

    /// Dismisses the shim that keeps the locks between two runs.
    pub(super) fn release(&mut self) {
        if self.session.shim == Shim::Standing {
            self.change(Change::Shim(Shim::Absent));
            self.act(Action::Release);
            self.record(Record::LockReleased);
        }
    }

    /// Dismisses a shim that was opened for other locks or another command than the next run needs.
    pub(super) fn release_unfit(&mut self) {
        if !self.session.fits_shim() {
            self.release();
        }
    }

    /// Changes what comes after the run that is ending.
    pub(super) fn aim(&mut self, wanted: Goal) {
        if let Life::Stopping { run, since, purpose, asked, goal } = self.session.life
            && goal != wanted
        {
            self.set_life(Life::Stopping { run, since, purpose, asked, goal: wanted });
        }
    }

    /// Does what any event may lead to: wake the session, rest it, deliver a message, start the idle time.
    pub(super) fn follow_up(&mut self) -> Option<Why> {
        if self.session.live.mute {
            return None;
        }
        let why = if self.session.live.closing { None } else { self.wake_or_rest() };
        self.deliver_next();
        if !self.session.live.closing {
            self.invite();
        }
        self.note_idleness();
        why
    }

    fn wake_or_rest(&mut self) -> Option<Why> {
        let need = self.session.need(self.now.boot);
        match (&self.session.life, need) {
            (Life::Idle { since }, Some(need)) => {
                if *since != IdleSince::Created {
                    self.record(Record::Woken);
                }
                self.begin(Purpose::Headless);
                Some(Why::Needed { need })
            }
            (Life::Backoff { .. } | Life::Blocked { .. }, None) => {
                self.not_needed();
                Some(Why::NotNeeded)
            }
            (&Life::Starting { run, stage: StartStage::Reserving, purpose: Purpose::Headless }, None) => {
                self.call_off(run, Draft::not_needed);
                Some(Why::NotNeeded)
            }
            (
                Life::Idle { .. }
                | Life::Backoff { .. }
                | Life::Blocked { .. }
                | Life::Starting { .. }
                | Life::Running { .. }
                | Life::Held { .. }
                | Life::Stopping { .. }
                | Life::Stopped
                | Life::Failed { .. }
                | Life::Archived { .. },
                _,
            ) => None,
        }
    }

    pub(super) fn not_needed(&mut self) {
        self.rest(Life::Idle { since: IdleSince::NotNeeded });
    }

    /// The idle time of an on-demand run starts when the last need ends; a connected client delays it.
    fn note_idleness(&mut self) {
        let running = matches!(self.session.life, Life::Running { .. });
        let on_demand = self.session.spec.mode == Mode::OnDemand;
        let wanted = self.session.occupied().is_some() || !self.session.live.consumers.is_empty();
        let unneeded = match self.session.live.unneeded {
            _ if !running || !on_demand || wanted => None,
            Some(since) => Some(since),
            None => Some(self.now.boot),
        };
        if unneeded != self.session.live.unneeded {
            self.change(Change::Unneeded(unneeded));
        }
    }

    /// Forgets what was true only for the previous run.
    pub(super) fn forget_run(&mut self) {
        if self.session.live.memory != MemoryWatch::default() {
            self.change(Change::Memory(MemoryWatch::default()));
        }
        if self.session.live.sign_of_life.is_some() {
            self.change(Change::SignOfLife(None));
        }
        if self.session.live.unended.is_some() {
            self.change(Change::Unended(None));
        }
        if self.session.live.leaving.is_some() {
            self.change(Change::Leaving(None));
        }
        if self.session.live.standing.is_some() {
            self.change(Change::Standing(None));
        }
        if self.session.live.unsaved {
            self.change(Change::Unsaved(false));
        }
        self.withdraw_all();
        if self.session.interrupted {
            self.change(Change::Interrupted(false));
        }
    }
}

impl Session {
    /// Returns the purpose of the run that is starting, running or stopping.
    pub(super) fn purpose(&self) -> Purpose {
        match self.life {
            Life::Starting { purpose, .. } | Life::Stopping { purpose, .. } => purpose,
            Life::Held { then, .. } => Purpose::Interactive(then),
            Life::Idle { .. }
            | Life::Running { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => Purpose::Headless,
        }
    }
}
