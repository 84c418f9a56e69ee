//! The engine from outside: what can be read, what it is told to do, and what it publishes of changes.
//! Nothing is started or stored here.

use crate::caller::Pass;
use crate::define::config::Config;
use crate::define::definition::Definition;
use crate::define::home::Home;
use crate::engine::command::EngineCommand;
use crate::engine::input::{Create, Handle, LoopInput};
use crate::engine::tests::files::AtOnce;
use crate::engine::view::{EngineView, FeedChange};
use crate::engine::{Engine, Parts, ResourceLimits, WhyNot};
use crate::ports::locks::Folders;
use crate::show::list::{self, ListShape, Writing};
use pinfold_api::query::Sessions as Filter;
use pinfold_core::event::Ask;
use pinfold_core::{Event, MessageId, Now};
use pinfold_store::{Backend, Facts, History, SessionId};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

struct Room {
    engine: Engine,
    inputs: UnboundedReceiver<LoopInput>,
    _folder: tempfile::TempDir,
}

impl Room {
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        let home = Home {
            state: folder.path().join("home"),
            runtime: folder.path().join("home"),
            config: folder.path().join("home/config.toml"),
            user_locks: folder.path().join("locks"),
            variables: Vec::new(),
            refused: None,
        };
        pinfold_kernel::private::make_private(&home.state, pinfold_kernel::private::Wider::Refuse).unwrap();
        let (handle, inputs) = Handle::new();
        let store = pinfold_store::open(&Backend::Memory(History::Newest(100))).unwrap();
        let parts = Parts {
            socket: home.socket(),
            folders: Folders::open(&home).unwrap(),
            home,
            reader: std::rc::Rc::new(store.reader().unwrap()),
            store,
            alone: None,
            generation: 3,
            shim_program: (folder.path().join("no-shim"), Vec::new()),
            limits: ResourceLimits::default(),
            umask: None,
            last_event: 0,
            handle,
            config: Config::default(),
        };
        let mut engine = Engine::new(parts).unwrap();
        engine.ports.files = Arc::new(AtOnce::default());
        Room { engine, inputs, _folder: folder }
    }

    /// Takes all inputs, and those that result from them.
    fn settle(&mut self) {
        while let Ok(input) = self.inputs.try_recv() {
            self.engine.take(input);
        }
    }

    /// A session that waits for a message; `more` has fields of its definition.
    fn create(&mut self, name: &str, more: &Value) -> SessionId {
        let mut definition = json!({
            "agent": "command", "command": ["cat"], "dir": "/", "dir_lock": false, "mode": "on-demand",
        });
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let definition: Definition = serde_json::from_value(definition).unwrap();
        let (reply, mut receiver) = oneshot::channel();
        let name = name.parse().unwrap();
        self.engine.take(LoopInput::Create(Box::new(Create {
            name,
            definition,
            broken: None,
            by: None,
            reply,
        })));
        self.settle();
        receiver.try_recv().unwrap().unwrap()
    }

    fn ask(&mut self, id: SessionId, ask: Ask) {
        let event = Box::new(Event::Asked(ask));
        self.engine.take(LoopInput::Happened { id, event, facts: Box::<Facts>::default(), reply: None });
        self.settle();
    }

    fn order<T>(&mut self, command: impl FnOnce(oneshot::Sender<T>) -> EngineCommand) -> Option<T> {
        let (sender, mut receiver) = oneshot::channel();
        self.engine.take(LoopInput::Command(Box::new(command(sender))));
        self.settle();
        receiver.try_recv().ok()
    }

    fn view(&self) -> EngineView<'_> {
        EngineView(&self.engine)
    }

    /// The changes after a number: each with its number and the name of its session.
    fn changes(&self, after: u64) -> Vec<(u64, String)> {
        let changes = self.view().changes_after(after, 100).unwrap();
        let name = |what| match what {
            FeedChange::Session(view) => view.name,
            FeedChange::Removed(name) => format!("{name} was removed"),
        };
        changes.into_iter().map(|change| (change.number, name(change.what))).collect()
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_is_found_by_its_name_or_the_beginning_of_its_id() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    assert_eq!(room.view().find("a"), Ok(id));
    assert_eq!(room.view().find(&id.to_string().to_lowercase()), Ok(id));
    assert_eq!(room.view().find("b"), Err(WhyNot::Unknown { wanted: "b".into() }));
    assert_eq!(room.view().is_free("a"), Err(WhyNot::Exists { name: "a".into() }));
    room.create("b", &json!({}));
    let both = id.to_string()[..1].to_owned();
    assert_eq!(room.view().find(&both), Err(WhyNot::Ambiguous { wanted: both }));
}

#[tokio::test(flavor = "current_thread")]
async fn each_change_has_a_number_and_a_session_is_told_once() {
    let mut room = Room::new();
    let a = room.create("a", &json!({}));
    room.create("b", &json!({}));
    let (generation, latest) = room.view().revision();
    assert_eq!(generation, 3);
    assert_eq!(room.changes(latest), []);
    room.ask(a, Ask::Stop { grace: None });
    let told = room.changes(latest);
    assert_eq!(told.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["a"]);
    let all = room.changes(0);
    assert_eq!(all.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    room.ask(a, Ask::Stop { grace: None });
    assert_eq!(room.view().revision().1, told[0].0, "what changes nothing has no number");
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_read_or_told_waits_until_every_session_was_looked_at() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    room.engine.early.insert(id, Vec::new());
    let (settled, _waits) = oneshot::channel();
    let (reply, mut told) = oneshot::channel();
    let command = EngineCommand::AwaitMessage { id, message: MessageId(1), settled, reply };
    room.engine.take(LoopInput::Command(Box::new(command)));
    let (seen, mut read) = oneshot::channel();
    room.engine.take(LoopInput::Look(Box::new(move |view| _ = seen.send(view.sessions().count()))));
    assert!(told.try_recv().is_err() && read.try_recv().is_err());
    room.engine.early.remove(&id);
    room.engine.take_waiting();
    assert!(told.try_recv().unwrap().is_some());
    assert_eq!(read.try_recv(), Ok(1));
}

#[tokio::test(flavor = "current_thread")]
async fn a_list_is_read_in_parts_and_written_as_one() {
    let mut room = Room::new();
    let mut ids: Vec<SessionId> = ["a", "b", "c"].iter().map(|name| room.create(name, &json!({}))).collect();
    // Ids of one millisecond are in random order.
    ids.sort();
    let (filter, pass) = (Filter { limit: Some(2), ..Filter::default() }, Pass::default());
    let first = list::part(room.view(), (&filter, &pass), None, 2);
    assert_eq!((first.sessions.len(), first.more, first.total), (2, true, Some(3)));
    let last = list::part(room.view(), (&filter, &pass), Some(ids[1]), 2);
    assert_eq!((last.sessions.len(), last.more), (1, false));
    let mut writing = Writing::of_sessions();
    writing.add(&first.sessions, ListShape::Brief, Now::default());
    writing.add(&last.sessions, ListShape::Brief, Now::default());
    let mut rows = Writing::of_rows();
    let first = rows.add_rows(room.view(), (&filter, &pass), (None, 2), Now::default());
    assert_eq!((&first.sessions[..], first.more, first.total), (&ids[..2], true, Some(3)));
    let last = rows.add_rows(room.view(), (&filter, &pass), (Some(ids[1]), 2), Now::default());
    assert_eq!((&last.sessions[..], last.more), (&ids[2..], false));
    for list in [writing, rows] {
        let all: Vec<Value> = serde_json::from_slice(&list.finish()).unwrap();
        let names: BTreeSet<&str> = all.iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!((all.len(), names), (3, BTreeSet::from(["a", "b", "c"])));
    }
    assert_eq!(Writing::of_sessions().finish(), b"[]");
}

#[tokio::test(flavor = "current_thread")]
async fn only_an_archived_session_is_removed() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    let why = room.order(|done| EngineCommand::Remove { id, by: None, done }).unwrap().unwrap_err();
    assert_eq!(why, WhyNot::NotArchived { name: "a".into(), state: "idle" });
}
