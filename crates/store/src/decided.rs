//! Turns a decision of the core into the rows that it changes.

use crate::answer::GivenAnswer;
use crate::audit::{self, event_data};
use crate::batch::Batch;
use crate::rows::TurnPlace;
use crate::step::{EventRun, EventStep, RunStep, Step};
use crate::ulid::{RunId, SessionId};
use crate::usage::Spent;
use pinfold_core::inbox::MessageChange;
use pinfold_core::life::{HolderSeen, Process};
use pinfold_core::usage::{Figures, Spending};
use pinfold_core::{Change, Decision, Life, MessageId, Record, RunNumber, Session, Wall};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A decision of the core, together with the session that made it.
#[derive(Debug, Clone, Copy)]
pub struct Decided<'a> {
    /// The id of the session.
    pub id: SessionId,
    /// The session after the decision.
    pub session: &'a Session,
    /// What it decided.
    pub decision: &'a Decision,
    /// When it was decided.
    pub at: Wall,
}

/// What belongs to a decision but is not part of it.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The run that was live before the decision: records that name no run belong to it.
    pub run: Option<RunNumber>,
    /// The ids of runs that the decision begins.
    pub run_ids: BTreeMap<RunNumber, RunId>,
    /// The texts of messages that it queues.
    pub texts: BTreeMap<MessageId, String>,
    /// The answers to messages that are done; not every message has one.
    pub answers: BTreeMap<MessageId, GivenAnswer>,
    /// Where the output of turns that begin or end is in the log.
    pub places: BTreeMap<MessageId, TurnPlace>,
    /// The last lines of the run that ended.
    pub output: Vec<String>,
    /// The processes beside the agent that a park ended: pid and command line.
    pub parked: Vec<(u32, String)>,
    /// The caller who asked for it, as shown in events; `None` for something that happened by itself.
    pub by: Option<Value>,
    /// The session that sent the messages it queues; `None` for a person.
    pub from: Option<String>,
    /// The files that were sent with the messages that it queues.
    pub files: Vec<String>,
    /// The account that its turns are charged to.
    pub account: Option<String>,
    /// What the turn that it ends used.
    pub spent: Option<Figures>,
    /// Why a turn failed, in words.
    pub reason: Option<String>,
    /// The sentence for its events; if `None`, that of the decision.
    pub why: Option<String>,
}

impl Batch {
    /// Adds the durable part of a decision: the session, its messages and runs, and its events.
    pub fn decided(&mut self, decided: Decided<'_>, facts: &Facts) {
        let Decided { id, session, decision, at } = decided;
        if decision.changes.iter().any(changes_session) {
            self.session(id, session);
        }
        let why = facts.why.clone().unwrap_or_else(|| decision.why.to_string());
        let holder = decision.changes.iter().find_map(holder);
        let rows = Rows { id, at, why, holder, facts };
        self.steps.extend(decision.changes.iter().flat_map(|change| rows.of(change)));
    }
}

/// Whether this change alters the stored session.
fn changes_session(change: &Change) -> bool {
    change.is_durable() && !matches!(change, Change::Record(_))
}

fn holder(change: &Change) -> Option<&HolderSeen> {
    if let Change::Life(Life::Blocked { holder, .. }) = change { holder.as_deref() } else { None }
}

/// What all rows of one decision have in common.
struct Rows<'a> {
    id: SessionId,
    at: Wall,
    why: String,
    holder: Option<&'a HolderSeen>,
    facts: &'a Facts,
}

impl Rows<'_> {
    fn of(&self, change: &Change) -> Vec<Step> {
        match change {
            Change::Message(step) => self.message(step).into_iter().chain(self.files(step)).collect(),
            Change::Spent(spending) => self.spent(spending).into_iter().collect(),
            Change::Life(life) => self.run_decided(life).into_iter().collect(),
            Change::Runs(runs) => vec![self.run(RunStep::Settled { run: runs.settled })],
            Change::Record(record) => {
                self.run_of(record).into_iter().chain([Step::Event(self.event(record))]).collect()
            }
            Change::Budgets(_)
            | Change::LastExit(_)
            | Change::Shim(_)
            | Change::Opened(_)
            | Change::Doubted { .. }
            | Change::Request(_)
            | Change::Vendor(_)
            | Change::VendorForgotten
            | Change::ConversationLost(_)
            | Change::Hold(_)
            | Change::BudgetRaised(_)
            | Change::TurnSince(_)
            | Change::TurnTook(_)
            | Change::Standing(_)
            | Change::Joined(..)
            | Change::Left(_)
            | Change::LastConsumer(_)
            | Change::KeepUntil(_)
            | Change::Unneeded(_)
            | Change::Takeover(_)
            | Change::Guest(_)
            | Change::AwaitingGuest(_)
            | Change::Memory(_)
            | Change::SignOfLife(_)
            | Change::Interrupted(_)
            | Change::Spec(..)
            | Change::Closing(_)
            | Change::Mute(_)
            | Change::Leaving(_)
            | Change::Unsaved(_)
            | Change::Looked
            | Change::Unended(_) => Vec::new(),
        }
    }

    fn message(&self, change: &MessageChange) -> Option<Step> {
        let place = |message| self.facts.places.get(message).copied();
        let (words, place) = match change {
            // Its turn has come, but the agent has not taken it: to people it is still queued.
            MessageChange::Delivering { .. } => return None,
            MessageChange::Queued { message, .. } => (self.facts.texts.get(message), None),
            MessageChange::Done { message } => {
                (self.facts.answers.get(message).map(|answer| &answer.rest), place(message))
            }
            MessageChange::Failed { message, .. } => (self.facts.reason.as_ref(), place(message)),
            MessageChange::Taken { message } => (None, place(message)),
            MessageChange::Requeued { .. } | MessageChange::Retried { .. } => (None, None),
        };
        let told = match change {
            MessageChange::Done { message } => self.facts.answers.get(message).map(|answer| answer.told),
            MessageChange::Queued { .. }
            | MessageChange::Delivering { .. }
            | MessageChange::Taken { .. }
            | MessageChange::Requeued { .. }
            | MessageChange::Failed { .. }
            | MessageChange::Retried { .. } => None,
        };
        let told = told.unwrap_or_default();
        let queued = matches!(change, MessageChange::Queued { .. });
        let from = self.facts.from.clone().filter(|_| queued);
        let (change, words) = (change.clone(), words.cloned());
        Some(Step::Message { session: self.id, at: self.at, change, words, told, from, place })
    }

    /// Returns the step for the files of a queued message.
    fn files(&self, change: &MessageChange) -> Option<Step> {
        let MessageChange::Queued { message, .. } = change else { return None };
        let paths = self.facts.files.clone();
        (!paths.is_empty()).then_some(Step::Files { session: self.id, message: *message, paths })
    }

    /// Returns the step for what a turn used; a report of nothing is not counted.
    fn spent(&self, spending: &Spending) -> Option<Step> {
        let Spending { run, message, spent, model, .. } = spending;
        let (session, account, at) = (self.id, self.facts.account.clone(), self.at);
        let message = message.map(Into::into);
        let (run, model, figures) = (*run, model.clone(), *spent);
        let row = Spent { at, session, run, message, account, model, figures };
        (!figures.is_nothing()).then(|| Step::Spent(Box::new(row)))
    }

    fn run_decided(&self, life: &Life) -> Option<Step> {
        let Life::Starting { run, purpose, .. } = *life else { return None };
        let id = self.facts.run_ids.get(&run).copied();
        Some(self.run(RunStep::Decided { run, purpose, id }))
    }

    fn run_of(&self, record: &Record) -> Option<Step> {
        if let Record::RunStarted { run, pid, fence, purpose } = *record {
            return Some(self.run(RunStep::Started { run, purpose, process: Process { pid, fence } }));
        }
        let Record::RunExited(exited) = record else { return None };
        Some(self.run(RunStep::Exited(exited.clone())))
    }

    fn run(&self, run: RunStep) -> Step {
        Step::Run { session: self.id, at: self.at, run }
    }

    fn event(&self, record: &Record) -> EventStep {
        let mut data = event_data(record);
        if let Record::RunExited(_) = record {
            data["output"] = Value::from(self.facts.output.clone());
        }
        if let Record::Parked = record {
            let process = |(pid, command): &(u32, String)| json!({ "pid": pid, "command": command });
            data["ended"] = self.facts.parked.iter().map(process).collect();
        }
        if let Record::LockBusy { .. } = record {
            data["holder"] = self.holder.map_or(Value::Null, holder_json);
        }
        if let (Record::MessageFailed { .. }, Some(reason)) = (record, &self.facts.reason) {
            data["text"] = Value::from(reason.clone());
        }
        if let (Record::MessageDone { .. } | Record::MessageFailed { .. }, Some(spent)) =
            (record, &self.facts.spent)
        {
            data["usage"] = figures_json(spent);
        }
        if let Some(by) = &self.facts.by {
            data["by"] = by.clone();
        }
        EventStep {
            at: self.at,
            session: Some(self.id),
            run: audit::run_of(record).or(self.facts.run).map(EventRun::Number),
            kind: record.kind(),
            why: self.why.clone(),
            data: data.to_string(),
        }
    }
}

/// Writes tokens and money in the words of the contract.
fn figures_json(spent: &Figures) -> Value {
    json!({
        "input_tokens": spent.input,
        "output_tokens": spent.output,
        "cached_tokens": spent.cached,
        "cost_usd": spent.cost.map(pinfold_core::usage::Money::usd),
    })
}

fn holder_json(holder: &HolderSeen) -> Value {
    json!({
        "resource": holder.resource,
        "pid": holder.pid,
        "command": holder.command,
        "session": holder.session,
        "since_ms": holder.since.map(|since| since.0),
    })
}
