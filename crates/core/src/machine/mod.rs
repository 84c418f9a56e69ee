//! What each event means in each state. This file only dispatches; each kind of event has its own.

mod attach;
mod consumers;
mod draft;
mod ended;
mod guests;
mod holds;
mod messages;
mod parting;
mod people;
mod recovery;
mod retire;
mod runs;
mod spending;
mod takeover;
mod talk;
mod unended;
mod watching;

use crate::decision::{Action, Change, Decision, InForce};
use crate::event::{Ask, Event, RunEvent};
use crate::ids::RunNumber;
use crate::life::{BlockedOn, FailCause, HolderSeen, Life};
use crate::policy::Spec;
use crate::rules::WaitReason;
use crate::session::Session;
use crate::time::Now;
use crate::why::Why;
use draft::Draft;

impl Session {
    /// Decides what follows from an event, and remembers it.
    pub fn handle(&mut self, event: &Event, now: Now) -> Decision {
        let mut draft = Draft::new(self, now);
        let mute = draft.session.live.mute;
        let why = if mute { draft.while_mute(event) } else { dispatch(&mut draft, event) };
        let why = draft.follow_up().unwrap_or(why);
        draft.finish(why)
    }
}

fn dispatch(draft: &mut Draft<'_>, event: &Event) -> Why {
    match event {
        Event::Created => draft.created(),
        Event::DaemonStarted(world) => draft.recover(world),
        Event::DownAsked => draft.going_down(),
        Event::Ticked => draft.ticked(),
        Event::Asked(ask) => asked(draft, *ask),
        Event::SpecChanged(spec) => draft.redefine(spec),
        Event::ConsumerJoined { consumer, kind } => draft.consumer_joined(*consumer, *kind),
        Event::ConsumerLeft { consumer } => draft.consumer_left(*consumer),
        Event::Message(event) => draft.message(event),
        Event::Request { run, event } => draft.request(*run, event),
        Event::Answered { request, answer } => draft.answer_given(*request, answer),
        Event::Run { run, event } => on_run(draft, *run, event),
        Event::Held(hold) => draft.held(hold.as_deref()),
        Event::BudgetRaised => draft.budget_raised(),
        Event::Looked => draft.looked(),
        Event::HolderGone => draft.holder_gone(),
        Event::HolderFound(holder) => draft.holder_found(holder),
        Event::ShimLeft => draft.shim_left(),
    }
}

fn asked(draft: &mut Draft<'_>, ask: Ask) -> Why {
    match ask {
        Ask::Start => draft.start_asked(),
        Ask::Stop { grace } => draft.stop_asked(grace),
        Ask::Restart => draft.restart_asked(),
        Ask::Interrupt => draft.interrupt_asked(),
        Ask::Archive => draft.archive_asked(),
        Ask::Restore => draft.restore_asked(),
        Ask::Purge { include_active, own } => draft.purge_asked(include_active, own),
        Ask::Attach { consumer, joins, urgent } => draft.attach_asked(consumer, joins, urgent),
        Ask::Takeover { consumer, urgent } => draft.takeover_asked(consumer, urgent),
    }
}

fn on_run(draft: &mut Draft<'_>, run: RunNumber, event: &RunEvent) -> Why {
    match event {
        RunEvent::Reserved => draft.reserved(run),
        RunEvent::LockBusy { holder } => draft.lock_busy(run, holder.as_deref()),
        RunEvent::Started(process) => draft.started(run, *process),
        RunEvent::StartFailed(failure) => draft.start_failed(run, failure),
        RunEvent::VendorLearned { id } => draft.vendor_learned(run, id),
        RunEvent::VendorLeft { id } => draft.vendor_left(run, id),
        RunEvent::VendorLost { another } => draft.vendor_lost(run, another.as_deref()),
        RunEvent::ConversationLost(lost) => draft.conversation_lost(run, lost),
        RunEvent::Saved { saved } => draft.saved(run, *saved),
        RunEvent::Standing(standing) => draft.standing(run, standing),
        RunEvent::Spent(report) => draft.spent(run, report),
        RunEvent::VendorBusy { holder: _ } => draft.vendor_busy(run),
        RunEvent::Guest { guest, event } => draft.guest(run, *guest, event),
        RunEvent::Exited { ended, shim, holder } => draft.exited(run, ended, *shim, holder.as_deref()),
        RunEvent::Unended(by) => draft.unended(run, by),
        RunEvent::ShimAnswered => draft.shim_answered(run),
        RunEvent::SignOfLife => draft.sign_of_life(run),
        RunEvent::MemoryRead { reading, source } => draft.memory_read(run, *reading, *source),
    }
}

impl Draft<'_> {
    fn created(&mut self) -> Why {
        self.record(crate::decision::Record::SessionCreated);
        Why::Noted
    }

    /// Takes a new definition, which counts from the next run on or, if nothing runs, from now on.
    fn redefine(&mut self, spec: &Spec) -> Why {
        // What kept it from working may be what was changed.
        self.let_messages_hurry();
        let spec = Box::new(spec.clone());
        if self.session.live_run().is_some() {
            self.change(Change::Spec(spec, InForce::NextRun));
            return Why::Noted;
        }
        let chosen = spec.conversation != self.session.spec.conversation;
        self.put_in_force(spec);
        if chosen && matches!(self.session.life, Life::Failed { cause: FailCause::ConversationLost }) {
            self.not_needed();
        }
        // A shim that does not answer cannot be dismissed; the next run finds out.
        if !self.session.live.mute {
            self.release_unfit();
        }
        Why::Noted
    }

    fn looked(&mut self) -> Why {
        if self.session.is_seen() {
            return Why::Stale;
        }
        self.change(Change::Looked);
        Why::Noted
    }

    fn holder_gone(&mut self) -> Why {
        if !self.session.life.awaits_holder() {
            return Why::Stale;
        }
        if self.session.live.closing {
            return Why::GoingDown;
        }
        self.note_hurry(self.session.budgets.hurried, false);
        self.begin(crate::life::Purpose::Headless);
        Why::HolderGone
    }

    /// Names the process that a contended session waits for, and watches it.
    fn holder_found(&mut self, holder: &HolderSeen) -> Why {
        let found = Some(Box::new(holder.clone()));
        let life = match &self.session.life {
            Life::Backoff { until, reason: WaitReason::Contended, refused, holder: None } => Life::Backoff {
                until: *until,
                reason: WaitReason::Contended,
                refused: refused.clone(),
                holder: found,
            },
            Life::Blocked { on: on @ BlockedOn::VendorLock { .. }, holder: None } => {
                Life::Blocked { on: *on, holder: found }
            }
            Life::Idle { .. }
            | Life::Starting { .. }
            | Life::Running { .. }
            | Life::Held { .. }
            | Life::Stopping { .. }
            | Life::Backoff { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => return Why::Stale,
        };
        self.set_life(life);
        self.act(Action::AwaitHolder);
        Why::Noted
    }
}
