//! A session of the core whose every decision becomes a batch, as in a daemon.

use crate::home;
use pinfold_core::event::{MessageEvent, RunEvent, Shim, TurnEnd};
use pinfold_core::inbox::MessageChange;
use pinfold_core::life::Process;
use pinfold_core::{
    Boot, Change, Decision, Ended, Event, Exit, Life, MessageId, Mode, Now, RunNumber, Session, Spec, Wall,
};
use pinfold_store::{Batch, Decided, Facts, GivenAnswer, NewSession, RunId, SessionId, Ulid};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) struct Driven {
    pub(crate) id: SessionId,
    pub(crate) session: Session,
    pub(crate) now: Now,
    /// Messages that have failed and have not been retried since.
    pub(crate) failed: Vec<MessageId>,
    /// The message of each key.
    pub(crate) keys: BTreeMap<String, MessageId>,
    number: u64,
    /// The answers to messages, where it matters.
    pub(crate) answers: BTreeMap<MessageId, GivenAnswer>,
}

impl Driven {
    /// Creates a session, and the batch that creates it.
    pub(crate) fn new(number: u64, name: &str, spec: Spec) -> (Driven, Batch) {
        let now = Now { wall: Wall(1_700_000_000_000), boot: Boot(1_000), ..Now::default() };
        let (id, session, failed, keys) = (home::id(number), Session::new(spec), Vec::new(), BTreeMap::new());
        let mut driven = Driven { id, session, now, failed, keys, number, answers: BTreeMap::new() };
        let mut batch = Batch::new();
        let definition = serde_json::json!({ "command": ["agent", name], "env": { "K": "ü\n" } });
        let (id, name) = (driven.id, name.to_owned());
        batch
            .create(NewSession { id, name, definition, parent: None, created_at: now.wall }, &driven.session);
        batch.append(driven.handle(&Event::Created));
        (driven, batch)
    }

    pub(crate) fn on_demand(number: u64, name: &str) -> (Driven, Batch) {
        Driven::new(number, name, Spec::new(Mode::OnDemand))
    }

    /// Handles an event, one millisecond later, and returns what has to become durable.
    pub(crate) fn handle(&mut self, event: &Event) -> Batch {
        self.pass(Duration::from_millis(1));
        let run = self.session.live_run();
        let mut event = event.clone();
        if let Event::Message(MessageEvent::Sent { key: Some(key), known, .. }) = &mut event {
            *known = self.keys.get(key).copied();
        }
        let decision = self.session.handle(&event, self.now);
        let facts = self.facts(run, &decision);
        self.note_failed(&decision);
        let mut batch = Batch::new();
        let Driven { id, session, now, .. } = self;
        batch.decided(Decided { id: *id, session, decision: &decision, at: now.wall }, &facts);
        batch
    }

    fn note_failed(&mut self, decision: &Decision) {
        for change in &decision.changes {
            if let Change::Message(MessageChange::Failed { message, .. }) = change {
                self.failed.push(*message);
            }
            if let Change::Message(MessageChange::Queued { message, key: Some(key) }) = change {
                self.keys.insert(key.clone(), *message);
            }
            if let Change::Message(MessageChange::Retried { message, .. }) = change {
                self.failed.retain(|failed| failed != message);
            }
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now.wall = self.now.wall + time;
        self.now.boot = self.now.boot + time;
    }

    fn facts(&self, run: Option<RunNumber>, decision: &Decision) -> Facts {
        let mut facts = Facts { run, output: vec!["last".into(), "words".into()], ..Facts::default() };
        for change in &decision.changes {
            if let Change::Life(Life::Starting { run, .. }) = change {
                facts.run_ids.insert(*run, self.run_id(*run));
            }
            if let Change::Message(step) = change {
                if let MessageChange::Queued { message, .. } = step {
                    facts.texts.insert(*message, text(*message));
                }
                if let MessageChange::Done { message } = step {
                    let given = self.answers.get(message).cloned();
                    facts.answers.insert(*message, given.unwrap_or_else(|| answer(*message).into()));
                }
            }
        }
        facts
    }

    pub(crate) fn run_id(&self, run: RunNumber) -> RunId {
        RunId(Ulid::new(self.number, u128::from(run.0)))
    }

    pub(crate) fn live_run(&self) -> RunNumber {
        self.session.live_run().unwrap()
    }

    pub(crate) fn run(&mut self, event: RunEvent) -> Batch {
        let run = self.live_run();
        self.handle(&Event::Run { run, event })
    }

    /// Goes from the decision to run to the first instruction.
    pub(crate) fn start(&mut self) -> Batch {
        let mut batch = self.run(RunEvent::Reserved);
        batch.append(self.run(RunEvent::Started(Process { pid: 4711, fence: 7 })));
        batch
    }

    pub(crate) fn exit(&mut self, exit: Exit) -> Batch {
        let ended = Ended::new(exit, Duration::from_millis(1_500));
        self.run(RunEvent::Exited { ended, shim: Shim::Absent, holder: None })
    }

    pub(crate) fn send(&mut self, message: MessageId, key: Option<&str>) -> Batch {
        let key = key.map(str::to_owned);
        self.handle(&Event::Message(MessageEvent::Sent { message, key, known: None }))
    }

    pub(crate) fn take(&mut self, message: MessageId) -> Batch {
        let run = self.live_run();
        self.handle(&Event::Message(MessageEvent::Taken { run, message }))
    }

    pub(crate) fn end_turn(&mut self, message: MessageId, how: TurnEnd) -> Batch {
        let run = self.live_run();
        self.handle(&Event::Message(MessageEvent::TurnEnded { run, message, how }))
    }
}

pub(crate) fn text(message: MessageId) -> String {
    format!("text of {}", message.0)
}

pub(crate) fn answer(message: MessageId) -> String {
    format!("answer to {}", message.0)
}
