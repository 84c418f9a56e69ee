//! What follows from a decision, and when: nothing before the decision is durable.

use super::Engine;
use crate::crash;
use crate::engine::attaching::GuestEnd;
use crate::engine::feed::FeedNews;
use crate::engine::input::{Committer, LoopInput};
use crate::engine::reply::ReplyHandle;
use crate::engine::session::{Deeds, Pending};
use crate::ports::shims::order::Order;
use pinfold_core::decision::{Answer, TakeoverEnd};
use pinfold_core::inbox::MessageChange;
use pinfold_core::{Change, Decision, Event, MessageId, Now, Record, RunNumber, Wall};
use pinfold_store::{AuditEvent, Batch, Decided, Facts, Outcome, SessionId};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::debug;

/// Who carries out what follows from a decision.
enum Effect {
    /// The store's thread sends this order as soon as the decision is durable. It is all that follows, so the
    /// loop has nothing left to do, which saves a restart one turn of the loop.
    WithCommit(Order),
    /// The loop does these once it has heard that the decision is durable.
    After(Deeds),
}

impl Effect {
    /// Splits it into what goes with the commit and what the loop does afterwards.
    fn parted(self) -> (Option<Order>, Deeds) {
        match self {
            Effect::WithCommit(order) => (Some(order), Deeds::default()),
            Effect::After(deeds) => (None, deeds),
        }
    }
}

impl Engine {
    /// Asks the core for a decision.
    pub(super) fn decide(&mut self, id: SessionId, event: &Event, now: Now) -> Option<Decision> {
        let tracked = self.sessions.get_mut(&id)?;
        #[cfg(test)]
        let before = self.witness.is_some().then(|| tracked.session.clone());
        let agent = tracked.pid();
        let decision = tracked.session.handle(event, now);
        if let (Some(agent), Some(shim), true) = (agent, &tracked.shim, tracked.is_being_parked()) {
            tracked.beside = self.ports.shims.beside(shim.pid, agent);
        }
        tracked.follow_definition();
        debug!(event = event.word(), why = decision.why.rule(), "decided");
        #[cfg(test)]
        if let (Some(witness), Some(before)) = (&mut self.witness, before) {
            let (early, after) = (self.early.contains_key(&id), tracked.session.clone());
            let (event, decision) = (event.clone(), decision.clone());
            witness(super::simulation::witness::Witnessed { id, early, before, event, decision, after, now });
        }
        Some(decision)
    }

    /// Commits a decision if it has to be durable, and keeps what follows from it until it is.
    pub(super) fn keep(
        &mut self,
        id: SessionId,
        mut decision: Decision,
        facts: (Facts, Wall),
        reply: Option<ReplyHandle>,
    ) {
        let durable = decision.changes.iter().any(Change::is_durable);
        let effect = self.effect(id, &mut decision, durable);
        let (order, mut deeds) = effect.parted();
        let (mut joined, mut noted) = (false, None);
        if durable {
            let mut batch = self.batch(id, &decision, facts);
            match self.gathered.as_mut().filter(|gathered| gathered.is_of(id)) {
                Some(gathered) => joined = gathered.join(batch),
                None => {
                    noted = self.note_cursor(id, &mut batch);
                    self.commit_with(Some(id), batch, order);
                }
            }
        }
        let reply = self.act_first(id, &mut deeds, decision.answer.as_ref(), reply);
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        if let Some(how) = takeover_end_in(&decision) {
            tracked.attaching.takeover_ended(how);
        }
        if let Some(how) = guest_end_in(&decision) {
            tracked.attaching.guest_ended(&how);
        }
        let (settled, news) = (settled_in(&decision), news_of(&decision, durable));
        let pending = Pending {
            durable: !durable,
            deeds,
            answer: decision.answer,
            reply,
            snapshot: tracked.snapshot(),
            settled,
            news,
            joined,
            noted,
        };
        tracked.pending.push_back(pending);
        self.drain(id);
    }

    fn effect(&mut self, id: SessionId, decision: &mut Decision, durable: bool) -> Effect {
        let settles = exit_in(decision);
        // Gathered decisions are committed later.
        let alone = self.gathered.is_none() && self.together.borrow().is_none();
        let order = if durable && alone { self.order(id, decision, settles) } else { None };
        match order {
            Some(order) => Effect::WithCommit(order),
            None => Effect::After(Deeds { settles, actions: std::mem::take(&mut decision.actions) }),
        }
    }

    fn batch(&mut self, id: SessionId, decision: &Decision, (mut facts, at): (Facts, Wall)) -> Batch {
        let mut batch = Batch::new();
        let Some(tracked) = self.sessions.get_mut(&id) else { return batch };
        if std::mem::take(&mut tracked.reloaded) {
            batch.reloaded(id);
        }
        facts.run_ids.extend(tracked.latest);
        batch.decided(Decided { id, session: &tracked.session, decision, at }, &facts);
        batch
    }

    pub(crate) fn commit(&self, id: Option<SessionId>, batch: Batch) {
        self.commit_with(id, batch, None);
    }

    fn commit_with(&self, id: Option<SessionId>, batch: Batch, order: Option<Order>) {
        let beginnings = |id| self.sessions.get(&id).map_or(0, |tracked| tracked.beginnings);
        let of = id.map(|id| Committer { id, beginnings: beginnings(id) });
        if let Some(together) = self.together.borrow_mut().as_mut() {
            return together.add(of, batch);
        }
        crash::point("commit.before");
        let (handle, metrics, begun) = (self.handle.clone(), Arc::clone(&self.metrics), Instant::now());
        let told = move |outcome| {
            metrics.commit.took(begun.elapsed());
            handle.tell(LoopInput::Committed { of, outcome });
        };
        self.ports.journal.commit(batch, order, Box::new(told));
    }

    /// Adds an event that no session decides; `reply` hears when it is durable.
    pub(super) fn note(&mut self, event: AuditEvent, reply: oneshot::Sender<()>) {
        let mut batch = Batch::new();
        batch.event(event);
        let handle = self.handle.clone();
        let told = move |outcome: Outcome| {
            if outcome.is_ok() {
                // A caller that only adds a note does not wait.
                _ = reply.send(());
            }
            handle.tell(LoopInput::Committed { of: None, outcome });
        };
        self.ports.journal.commit(batch, None, Box::new(told));
    }

    /// Deletes old records. Followers of events hear of one event about it; the rest is for the caller.
    pub(super) fn commit_pruning(&self, batch: Batch, done: oneshot::Sender<Outcome>) {
        let handle = self.handle.clone();
        let told = move |outcome: Outcome| {
            if let Ok(committed) = &outcome
                && !committed.seqs.is_empty()
            {
                handle.tell(LoopInput::Committed { of: None, outcome: Ok(committed.clone()) });
            }
            _ = done.send(outcome);
        };
        self.ports.journal.commit(batch, None, Box::new(told));
    }

    pub(super) fn committed(&mut self, of: Option<Committer>, outcome: Outcome) {
        let id = of.map(|of| of.id);
        let known = of.and_then(|of| Some((self.sessions.get(&of.id)?.beginnings, of.beginnings)));
        let of_before = known.is_some_and(|(now, then)| now != then);
        match outcome {
            Ok(committed) if !committed.seqs.is_empty() => {
                self.last_event.send_replace(committed.seqs.end - 1);
            }
            Ok(_) => {}
            // It was being committed when the session began again, and failed with the one before it.
            Err(_) if of_before => return,
            Err(error) => return self.not_durable(id, &error),
        }
        crash::point("commit.after");
        // A batch of events alone depends on nothing and is durable all the same, but nothing follows from it
        // any more.
        if of_before {
            return;
        }
        let Some(id) = id else { return };
        if let Some(tracked) = self.sessions.get_mut(&id) {
            let mut waiting = tracked.pending.iter_mut().filter(|pending| !pending.durable);
            if let Some(first) = waiting.next() {
                first.durable = true;
                waiting.take_while(|pending| pending.joined).for_each(|pending| pending.durable = true);
                tracked.unborn = false;
            }
        }
        self.drain(id);
    }

    /// Acts on every durable decision, in order.
    fn drain(&mut self, id: SessionId) {
        loop {
            let Some(tracked) = self.sessions.get_mut(&id) else { return };
            if !tracked.pending.front().is_some_and(|pending| pending.durable) {
                self.forget_outdated(id);
                return self.speak(id);
            }
            let Some(pending) = tracked.pending.pop_front() else { return };
            if tracked.pending.is_empty() {
                tracked.keys.clear();
            }
            if tracked.pending.is_empty() && std::mem::take(&mut tracked.stop_noted) {
                self.ports.files.settle_stop(id);
            }
            self.act_on(id, pending);
        }
    }

    /// Tells everyone who waits for a durable decision, and does what follows from it.
    fn act_on(&mut self, id: SessionId, pending: Pending) {
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        self.feed.publish(id, &tracked.seen, pending.snapshot, pending.news);
        self.see_to_end(id);
        let Some(tracked) = self.sessions.get_mut(&id) else { return };
        for waiter in pending.settled.iter().filter_map(|message| tracked.waiters.remove(message)).flatten() {
            _ = waiter.send(());
        }
        if let (Some(run), Some(shim)) = (pending.deeds.settles, &tracked.shim) {
            crash::point("acknowledge.before");
            shim.send(&pinfold_shim::Command::Ack { run });
            crash::point("acknowledge.told");
        }
        if let Some(noted) = pending.noted {
            self.heard(id, noted);
        }
        if let Some(reply) = pending.reply {
            reply.give(pending.answer.unwrap_or(Answer::Done));
        }
        for action in &pending.deeds.actions {
            self.perform(id, action);
        }
        self.tell_attaching(id);
    }
}

/// A recorded decision is a change of the session; any other is about the live run.
fn news_of(decision: &Decision, durable: bool) -> FeedNews {
    // A hold is part of the session's state, although it is stored with its account.
    let held = decision.changes.iter().any(|change| matches!(change, Change::Hold(_)));
    match (durable || held, decision.changes.is_empty()) {
        (true, _) => FeedNews::Change,
        (false, false) => FeedNews::Live,
        (false, true) => FeedNews::Nothing,
    }
}

/// How a guest ended, if the decision says so.
fn guest_end_in(decision: &Decision) -> Option<GuestEnd> {
    decision.changes.iter().find_map(|change| {
        let Change::Record(Record::GuestEnded { exit, text, .. }) = change else { return None };
        Some(GuestEnd { exit: *exit, text: text.clone() })
    })
}

/// How a takeover ended, if the decision says so.
fn takeover_end_in(decision: &Decision) -> Option<TakeoverEnd> {
    decision.changes.iter().find_map(|change| {
        if let Change::Record(Record::TakeoverDone { how }) = change { Some(*how) } else { None }
    })
}

/// The messages that a decision settles.
fn settled_in(decision: &Decision) -> Vec<MessageId> {
    let settled = |change: &Change| {
        let Change::Message(MessageChange::Done { message } | MessageChange::Failed { message, .. }) = change
        else {
            return None;
        };
        Some(*message)
    };
    decision.changes.iter().filter_map(settled).collect()
}

/// The run whose end this decision settles, or whose start failed.
fn exit_in(decision: &Decision) -> Option<RunNumber> {
    let exit = |change: &Change| {
        if let Change::Record(Record::RunExited(exited)) = change {
            return Some(exited.run);
        }
        if let Change::Record(Record::StartFailed { run, .. }) = change { Some(*run) } else { None }
    };
    decision.changes.iter().find_map(exit)
}
