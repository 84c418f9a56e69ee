//! Writes the store that is kept in `tests/fixtures/` to prove that old files load forever.
//!
//! ```text
//! cargo run -p pinfold-store --example write_fixture -- crates/store/tests/fixtures/v1.db
//! ```
//! Do this once for each schema version, before its first release, under a new name. A fixture that is
//! checked in is never rewritten: it stands for files that people have.

use pinfold_core::event::{MessageEvent, RunEvent, Shim, TurnEnd};
use pinfold_core::life::{HolderSeen, Process};
use pinfold_core::{
    Ask, Boot, Change, ConsumerId, Ended, Event, Exit, Life, MessageId, Mode, Now, Session, Spec, Wall,
};
use pinfold_store::{Batch, Decided, Facts, NewSession, RunId, SessionId, Store, StoreOptions, Ulid};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: write_fixture PATH")?;
    let store = Store::open(Path::new(&path), &StoreOptions::default())?;
    if !store.opened().created {
        return Err("this file is there already".into());
    }
    let mut daemon = Batch::new();
    daemon.daemon_started(3, "boot");
    store.commit(daemon).wait()?;
    for (number, story) in (0..).zip(STORIES) {
        store.commit(story.told(number)).wait()?;
    }
    Ok(())
}

struct Story {
    name: &'static str,
    mode: Mode,
    events: fn() -> Vec<Event>,
}

const STORIES: [Story; 10] = [
    Story { name: "idle", mode: Mode::OnDemand, events: Vec::new },
    Story { name: "running", mode: Mode::OnDemand, events: busy },
    Story { name: "backoff", mode: Mode::Always, events: || [started(), vec![exited(1)]].concat() },
    Story { name: "blocked", mode: Mode::Always, events: || vec![lock_busy()] },
    Story { name: "stopping", mode: Mode::Always, events: || [started(), vec![STOP]].concat() },
    Story { name: "stopped", mode: Mode::OnDemand, events: || vec![STOP] },
    Story { name: "failed", mode: Mode::Always, events: || [started(), vec![exited(78)]].concat() },
    Story { name: "held", mode: Mode::OnDemand, events: || [vec![takeover()], started()].concat() },
    Story { name: "starting", mode: Mode::Always, events: Vec::new },
    Story { name: "archived", mode: Mode::OnDemand, events: || vec![Event::Asked(Ask::Archive)] },
];

const STOP: Event = Event::Asked(Ask::Stop { grace: None });
const TEXTS: [&str; 4] = ["one", "two", "three", "four"];

impl Story {
    fn told(&self, number: u64) -> Batch {
        let mut now = Now { wall: Wall(1_800_000_000_000), boot: Boot(60_000), ..Now::default() };
        let spec = Spec { memory_limit: Some(1 << 30), interactive: true, ..Spec::new(self.mode) };
        let mut session = Session::new(spec);
        let id = id(number);
        let definition = serde_json::json!({ "command": ["agent", self.name], "tags": ["ü"] });
        let parent = (self.name == "running").then(|| self::id(0));
        let mut batch = Batch::new();
        let name = self.name.to_owned();
        batch.create(NewSession { id, name, definition, parent, created_at: now.wall }, &session);
        for event in [vec![Event::Created], (self.events)()].concat() {
            now.wall = now.wall + Duration::from_millis(10);
            now.boot = now.boot + Duration::from_millis(10);
            let run = session.live_run();
            let decision = session.handle(&event, now);
            // The last message comes from another session.
            let last = Event::Message(MessageEvent::Sent { message: message(3), key: None, known: None });
            let from = (event == last).then(|| "idle".to_owned());
            let mut facts = Facts { run, output: vec!["bye".into()], from, ..Facts::default() };
            for change in &decision.changes {
                if let Change::Life(Life::Starting { run, .. }) = change {
                    facts.run_ids.insert(*run, RunId(Ulid::new(number, u128::from(run.0))));
                }
            }
            facts.texts = (0..4).map(|at| (message(at), TEXTS[at].to_owned())).collect();
            facts.answers = [(message(0), "eins".into())].into();
            batch.decided(Decided { id, session: &session, decision: &decision, at: now.wall }, &facts);
        }
        batch
    }
}

fn id(number: u64) -> SessionId {
    SessionId(Ulid::new(1_800_000_000_000 + number, 7))
}

fn message(at: usize) -> MessageId {
    MessageId((1 << 100) + at as u128)
}

fn run(event: RunEvent) -> Event {
    Event::Run { run: pinfold_core::RunNumber(1), event }
}

fn started() -> Vec<Event> {
    vec![run(RunEvent::Reserved), run(RunEvent::Started(Process { pid: 4711, fence: 1 << 20 }))]
}

fn exited(code: i32) -> Event {
    let ended = Ended::new(Exit::Code(code), Duration::from_millis(20));
    run(RunEvent::Exited { ended, shim: Shim::Absent, holder: None })
}

fn lock_busy() -> Event {
    let (pid, command) = (Some(99), Some("claude".to_owned()));
    let holder = HolderSeen { resource: "/src".into(), pid, command, session: None, since: Some(Wall(1)) };
    run(RunEvent::LockBusy { holder: Some(Box::new(holder)) })
}

fn takeover() -> Event {
    Event::Asked(Ask::Takeover { consumer: ConsumerId(1), urgent: false })
}

/// One message done, one failed, one in its turn, one queued.
fn busy() -> Vec<Event> {
    let sent = |at: usize| {
        let key = (at == 0).then(|| "first".to_owned());
        Event::Message(MessageEvent::Sent { message: message(at), key, known: None })
    };
    let run = pinfold_core::RunNumber(1);
    let ended = |at, how| Event::Message(MessageEvent::TurnEnded { run, message: message(at), how });
    let taken = Event::Message(MessageEvent::Taken { run, message: message(2) });
    let turns = vec![ended(0, TurnEnd::Answered), ended(1, TurnEnd::Failed), taken];
    [(0..4).map(sent).collect(), started(), turns].concat()
}
