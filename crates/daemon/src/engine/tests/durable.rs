//! The loop with a shim that the test plays, and a store whose writer is held or refuses.
//!
//! Locks and database are real, in a folder of their own; no process is started. The test itself takes each
//! input that comes back to the loop, so it can look between any two of them.

use crate::define::definition::Definition;
use crate::define::home::Home;
use crate::engine::input::{Create, Handle, LoopInput, Post, Sending};
use crate::engine::{Engine, EngineCommand, Parts, ReplyHandle, ResourceLimits, Unsettled};
use crate::ports::locks::Folders;
use crate::ports::shims::Greeted;
use pinfold_api::request::NewSession;
use pinfold_core::decision::Answer;
use pinfold_core::event::{Ask, Machine, ShimSeen};
use pinfold_core::exit::{Ended, Exit};
use pinfold_core::life::Process;
use pinfold_core::time::Wall;
use pinfold_core::{Event, MessageId, RunNumber, State};
use pinfold_lock::{Request, Resource, RunName, SessionName};
use pinfold_shim::client::ShimConnection;
use pinfold_shim::log::Position;
use pinfold_shim::{Command, Decoder, Exited, Keeping, Report, Welcome};
use pinfold_store::{Batch, Facts, Message, SessionId, Store, StoreOptions};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Far more than anything takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// A run that lived this long is not part of a crash streak, and the next follows at once.
const LONG: Duration = Duration::from_secs(3600);
const FIRST: RunNumber = RunNumber(1);
const PROCESS: Process = Process { pid: 4_000_000, fence: 7 };

/// A loop that does not run by itself, and its inputs.
struct Room {
    engine: Engine,
    inputs: mpsc::UnboundedReceiver<LoopInput>,
    // Dropped after the engine, whose files are in it.
    temp: tempfile::TempDir,
}

/// The test's side of a connection that the engine takes for a shim's.
struct Shim {
    stream: UnixStream,
    decoder: Decoder,
}

fn engine_in(temp: &tempfile::TempDir, generation: u64) -> (Engine, mpsc::UnboundedReceiver<LoopInput>) {
    let state = temp.path().join("home");
    std::fs::create_dir_all(&state).unwrap();
    let home = Home {
        runtime: state.clone(),
        user_locks: temp.path().join("locks"),
        config: state.join("config.toml"),
        variables: Vec::new(),
        refused: None,
        state,
    };
    let (handle, inputs) = Handle::new();
    let store = Store::open(&home.database(), &StoreOptions::default()).unwrap();
    let parts = Parts {
        folders: Folders::open(&home).unwrap(),
        socket: home.socket(),
        reader: std::rc::Rc::new(store.reader().unwrap()),
        store,
        alone: None,
        generation,
        // A program that cannot be started: the result is ignored, and the test's own shim is used instead.
        shim_program: (home.state.join("no-such-shim"), Vec::new()),
        limits: ResourceLimits::default(),
        umask: None,
        last_event: 0,
        handle,
        config: crate::define::config::Config::default(),
        home,
    };
    (Engine::new(parts).unwrap(), inputs)
}

impl Room {
    fn new() -> Room {
        let temp = tempfile::tempdir().unwrap();
        let (engine, inputs) = engine_in(&temp, 1);
        Room { engine, inputs, temp }
    }

    /// The same home under the next daemon, which has loaded what is stored and looked at nothing.
    fn again(self) -> Room {
        let Room { engine, inputs, temp } = self;
        drop((engine, inputs));
        let (mut engine, inputs) = engine_in(&temp, 2);
        let reader = engine.store.reader().unwrap();
        engine.load(&reader).unwrap();
        Room { engine, inputs, temp }
    }

    async fn next(&mut self, what: &str) -> LoopInput {
        let input = tokio::time::timeout(PATIENCE, self.inputs.recv()).await;
        input.unwrap_or_else(|_| panic!("waited in vain for {what}")).unwrap()
    }

    /// Takes inputs until a wanted one arrives, which is returned without being taken.
    async fn until(&mut self, what: &str, wanted: impl Fn(&LoopInput) -> bool) -> LoopInput {
        loop {
            let input = self.next(what).await;
            if wanted(&input) {
                return input;
            }
            self.engine.take(input);
        }
    }

    /// Takes inputs up to and including a wanted one.
    async fn take(&mut self, what: &str, wanted: impl Fn(&LoopInput) -> bool) {
        let input = self.until(what, wanted).await;
        self.engine.take(input);
    }

    /// A session whose first run is to be started; its shim has not connected yet.
    async fn starting(&mut self, mode: &str) -> SessionId {
        let request = NewSession {
            command: Some(vec!["true".into()]),
            mode: Some(mode.into()),
            caller_dir: Some("/".into()),
            caller_env: Some(BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())])),
            ..NewSession::default()
        };
        let definition = Definition::new(&request, None).unwrap();
        let (reply, created) = oneshot::channel();
        let name = "api".parse().unwrap();
        self.engine.take(LoopInput::Create(Box::new(Create {
            name,
            definition,
            broken: None,
            by: None,
            reply,
        })));
        let came = self.until("the start of a shim", |input| matches!(input, LoopInput::ShimUp { .. })).await;
        assert!(
            matches!(came, LoopInput::ShimUp { run: FIRST, result: Err(_), .. }),
            "there is no such program"
        );
        created.await.unwrap().unwrap()
    }

    /// Gives the first run a shim.
    fn shim_comes(&mut self, id: SessionId) -> Shim {
        let socket = self.temp.path().join("shim.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let link = ShimConnection::connect(&socket).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let welcome = welcome(self.engine.generation, Keeping::Standing);
        let up = Greeted { socket, link, welcome: Box::new(welcome), child: None }.up();
        self.engine.take(LoopInput::ShimUp { id, run: FIRST, result: Ok(Box::new(up)) });
        Shim { stream, decoder: Decoder::default() }
    }

    /// A session whose first run lives under a shim.
    async fn running(&mut self, mode: &str) -> (SessionId, Shim) {
        let id = self.starting(mode).await;
        let mut shim = self.shim_comes(id);
        shim.say(&Report::Started { run: FIRST, process: PROCESS, at: Wall(0) });
        self.take("the shim's report", |input| matches!(input, LoopInput::Shim { .. })).await;
        self.take("that it is stored", |input| matches!(input, LoopInput::Committed { .. })).await;
        assert_eq!(self.engine.sessions[&id].session.state(), State::Running);
        shim.heard();
        (id, shim)
    }

    /// Posts a text and returns the message stored for it.
    async fn sent(&mut self, id: SessionId, post: Post) -> MessageId {
        let (reply, mut answer) = ReplyHandle::new();
        self.engine.take(LoopInput::Post { id, post, by: None, reply });
        loop {
            match answer.try_recv() {
                Ok(Ok(Answer::Queued { message, .. })) => return message,
                Ok(other) => panic!("{other:?}"),
                Err(_) => self.take("that it is stored", is_committed).await,
            }
        }
    }

    /// Waits for a message and returns what is known of it at first.
    fn awaits(&mut self, id: SessionId, message: MessageId) -> Option<Unsettled> {
        let ((settled, _receiver), (reply, mut told)) = (oneshot::channel(), oneshot::channel());
        let command = EngineCommand::AwaitMessage { id, message, settled, reply };
        self.engine.take(LoopInput::Command(Box::new(command)));
        told.try_recv().unwrap().map(|(_, unsettled)| unsettled)
    }

    /// Keeps the writer of the store busy until the result is dropped.
    fn hold(&self) -> Sender<()> {
        let (here, arrived) = channel::<()>();
        let (held, hold) = channel::<()>();
        self.engine.store.commit_then(Batch::new(), move |_| {
            drop(here);
            _ = hold.recv_timeout(PATIENCE);
        });
        arrived.recv_timeout(PATIENCE).unwrap_err();
        held
    }
}

/// What a shim says to a connecting daemon.
fn welcome(generation: u64, keeping: Keeping) -> Welcome {
    Welcome {
        version: pinfold_shim::VERSION,
        shim: std::process::id(),
        generation,
        keeping,
        exits: Vec::new(),
        log: Position(0),
        can: pinfold_shim::Can::default(),
        tape: None,
        guest: None,
    }
}

/// A text for an inbox, and the receiver of its row.
fn send(text: &str, key: Option<&str>) -> (Post, oneshot::Receiver<Message>) {
    let (sender, row) = oneshot::channel();
    (Post::Send(Sending { text: text.into(), key: key.map(Into::into), files: Vec::new(), row: sender }), row)
}

impl Shim {
    fn say(&mut self, report: &Report) {
        let mut bytes = Vec::new();
        report.encode(&mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    /// What it was told since the last call. Whatever the engine sends has arrived when the sending call
    /// returns.
    fn heard(&mut self) -> Vec<Command> {
        let mut bytes = [0; 65536];
        if let Ok(count) = self.stream.read(&mut bytes) {
            self.decoder.feed(&bytes[..count]);
        }
        let mut commands = Vec::new();
        while let Some(frame) = self.decoder.frame().unwrap() {
            commands.extend(Command::decode(&frame).unwrap());
        }
        commands
    }

    fn exits(&mut self, code: i32, lived: Duration) {
        self.say(&Report::Exited(Exited {
            run: FIRST,
            ended: Ended::new(Exit::Code(code), lived),
            failure: None,
            pid: PROCESS.pid,
            fence: PROCESS.fence,
            at: Wall(0),
            log: Position(0),
            tape: None,
        }));
    }
}

fn says(input: &LoopInput) -> bool {
    matches!(input, LoopInput::Shim { .. })
}

fn is_committed(input: &LoopInput) -> bool {
    matches!(input, LoopInput::Committed { .. })
}

/// Runs a test on one thread, like the daemon's loop.
fn play(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test());
    runtime.shutdown_timeout(Duration::from_secs(5));
}

#[test]
fn an_end_is_acknowledged_when_it_is_stored_and_not_before() {
    for mode in ["always", "once"] {
        play(async || {
            let mut room = Room::new();
            let (_, mut shim) = room.running(mode).await;
            let held = room.hold();
            shim.exits(0, LONG);
            room.take("the exit", says).await;
            assert_eq!(shim.heard(), [], "{mode}: before it is stored");
            drop(held);
            // The commit of the end; the batch that held the writer reports to no one.
            room.take("that it is stored", is_committed).await;
            let told = shim.heard();
            assert_eq!(told.first(), Some(&Command::Ack { run: FIRST }), "{mode}: {told:?}");
        });
    }
}

#[test]
fn nothing_is_ordered_when_its_commit_failed() {
    play(async || {
        let mut room = Room::new();
        let (id, mut shim) = room.running("always").await;
        // Another program has removed the session from the database: whatever is decided of it cannot be
        // stored.
        let mut batch = Batch::new();
        batch.remove(id);
        room.engine.store.commit(batch).wait().unwrap();
        shim.exits(0, LONG);
        room.take("the exit", says).await;
        let outcome = room.until("what came of the commit", is_committed).await;
        assert!(matches!(outcome, LoopInput::Committed { outcome: Err(_), .. }));
        assert_eq!(shim.heard(), []);
    });
}

#[test]
fn the_next_run_is_ordered_as_soon_as_it_is_stored() {
    play(async || {
        let mut room = Room::new();
        let (_, mut shim) = room.running("always").await;
        shim.exits(0, LONG);
        room.take("the exit", says).await;
        // Sent by the writer itself: the loop need not hear of it first.
        let _stored = room.until("that it is stored", is_committed).await;
        let told = shim.heard();
        let [Command::Ack { run: FIRST }, Command::Start(start)] = &told[..] else { panic!("{told:?}") };
        assert_eq!(start.run, RunNumber(2));
    });
}

#[test]
fn an_answer_waits_until_what_was_decided_is_stored() {
    play(async || {
        let mut room = Room::new();
        let (id, _shim) = room.running("always").await;
        let held = room.hold();
        let (reply, mut answer) = ReplyHandle::new();
        let (post, _row) = send("hello", None);
        room.engine.take(LoopInput::Post { id, post, by: None, reply });
        assert!(answer.try_recv().is_err(), "answered before it is stored");
        drop(held);
        room.take("that it is stored", is_committed).await;
        assert!(answer.try_recv().unwrap().is_ok());
    });
}

#[test]
fn the_row_that_a_sender_is_answered_with_is_the_one_that_is_stored() {
    play(async || {
        let mut room = Room::new();
        let (id, _shim) = room.running("always").await;
        let (post, mut row) = send("hello", Some("once"));
        let told = room.sent(id, post).await;
        let row = row.try_recv().expect("a new message has its row");
        assert_eq!(told, MessageId::from(row.id));
        let stored = room.engine.store.reader().unwrap().message(told).unwrap().unwrap();
        assert_eq!(row, stored);
        let (post, mut row) = send("again", Some("once"));
        assert_eq!(room.sent(id, post).await, told);
        assert!(row.try_recv().is_err(), "what the key stands for is read where it is stored");
    });
}

#[test]
fn a_message_in_the_inbox_is_known_not_to_be_settled_and_the_store_is_asked_for_any_other() {
    play(async || {
        let mut room = Room::new();
        let (id, _shim) = room.running("always").await;
        let (post, _row) = send("hello", None);
        let message = room.sent(id, post).await;
        assert_eq!(room.awaits(id, message), Some(Unsettled::Yes));
        assert_eq!(room.awaits(id, MessageId(1)), Some(Unsettled::Unknown));
    });
}

#[test]
fn a_stop_that_came_while_the_shim_was_started_is_told_to_it() {
    play(async || {
        let mut room = Room::new();
        let id = room.starting("always").await;
        let (event, facts) = (Box::new(Event::Asked(Ask::Stop { grace: None })), Box::new(Facts::default()));
        room.engine.take(LoopInput::Happened { id, event, facts, reply: None });
        room.take("that it is stored", is_committed).await;
        let mut shim = room.shim_comes(id);
        let told = shim.heard();
        assert!(told.iter().any(|command| matches!(command, Command::Stop { run: FIRST, .. })), "{told:?}");
    });
}

#[test]
fn a_session_is_removed_when_its_shim_has_left_and_not_refused_before() {
    play(async || {
        let mut room = Room::new();
        let (id, mut shim) = room.running("always").await;
        let (event, facts) = (Box::new(Event::Asked(Ask::Archive)), Box::new(Facts::default()));
        room.engine.take(LoopInput::Happened { id, event, facts, reply: None });
        shim.exits(0, LONG);
        room.take("the exit", says).await;
        assert_eq!(room.engine.sessions[&id].session.state(), State::Archived);
        let (done, mut removed) = oneshot::channel();
        let remove = crate::engine::command::EngineCommand::Remove { id, by: None, done };
        room.engine.take(LoopInput::Command(Box::new(remove)));
        room.engine.remove_what_rests();
        assert!(removed.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
        drop(shim);
        room.take("the end of the connection", |input| matches!(input, LoopInput::Shim { report: None, .. }))
            .await;
        while room.engine.sessions.contains_key(&id) {
            room.engine.remove_what_rests();
            let input = room.next("the removal").await;
            room.engine.take(input);
        }
        room.take("that its record is gone", |input| matches!(input, LoopInput::Forgotten(_))).await;
        assert!(removed.await.unwrap().is_ok());
    });
}

#[test]
fn a_message_waits_until_its_session_was_looked_at() {
    play(async || {
        let mut room = Room::new();
        let (id, _shim) = room.running("always").await;
        let mut room = room.again();
        let before = room.engine.store.reader().unwrap().max_seq().unwrap();
        let (reply, mut answer) = ReplyHandle::new();
        let (post, _row) = send("hello", None);
        room.engine.take(LoopInput::Post { id, post, by: None, reply });
        // Whatever the writer was given before is stored by now.
        room.engine.store.commit(Batch::new()).wait().unwrap();
        assert_eq!(room.engine.store.reader().unwrap().max_seq().unwrap(), before);
        assert!(answer.try_recv().is_err(), "answered before anybody has looked");
        let seen = Box::new(crate::ports::shims::observe::SessionSeen::nothing(Machine::Same));
        room.engine.take(LoopInput::Observed { id, seen });
        let answer = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Ok(answer) = answer.try_recv() {
                    return answer;
                }
                room.take("that it is stored", is_committed).await;
            }
        });
        let answer = answer.await.expect("the message that waited is answered");
        assert!(matches!(answer, Ok(Answer::Queued { .. })), "{answer:?}");
    });
}

#[test]
fn a_shim_that_stood_in_its_restart_gap_is_absent_only_when_its_lock_is_free() {
    play(async || {
        let mut room = Room::new();
        let (id, mut shim) = room.running("always").await;
        shim.exits(3, Duration::ZERO);
        room.take("the exit", says).await;
        room.take("that it is stored", is_committed).await;
        let session = &room.engine.sessions[&id].session;
        assert_eq!((session.live_run(), session.shim()), (None, pinfold_core::event::Shim::Standing));
        let mut room = room.again();
        // The shim exists and says nothing: only its lock shows it.
        let run = Some(RunName::new("of-the-shim").unwrap());
        let resource = Resource::Session(SessionName::new("api").unwrap());
        let folders = Folders::open(&room.engine.home).unwrap();
        let request = Request { run, ..Request::default() };
        let guard = folders.of(&resource).try_acquire(&resource, &request).unwrap();
        room.engine.look_around(Machine::Same);
        let seen = room.until("what was seen", |input| matches!(input, LoopInput::Observed { .. })).await;
        let LoopInput::Observed { seen, .. } = seen else { unreachable!("it was wanted") };
        assert_eq!(seen.world.shim, ShimSeen::Mute, "its lock is held");
        drop(guard);
        room.engine.look_around(Machine::Same);
        let seen = room.until("what was seen", |input| matches!(input, LoopInput::Observed { .. })).await;
        let LoopInput::Observed { seen, .. } = seen else { unreachable!("it was wanted") };
        assert_eq!(seen.world.shim, ShimSeen::Nobody, "its lock is free");
    });
}

#[test]
fn a_shim_whose_agent_is_just_being_started_is_asked_again_until_it_runs_or_not() {
    play(async || {
        let mut room = Room::new();
        let (id, shim) = room.running("always").await;
        drop(shim);
        let mut room = room.again();
        let socket = room.engine.home.shim_socket(id);
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let keeps = std::thread::spawn(move || {
            let starting = Keeping::Starting { run: FIRST };
            for keeping in
                [starting, starting, Keeping::Running { run: FIRST, process: PROCESS, at: Wall(0) }]
            {
                let (stream, _) = listener.accept().unwrap();
                let mut shim = Shim { stream, decoder: Decoder::default() };
                shim.say(&Report::Welcome(Box::new(welcome(2, keeping))));
                shim.heard();
            }
        });
        room.engine.look_around(Machine::Same);
        let seen = room.until("what was seen", |input| matches!(input, LoopInput::Observed { .. })).await;
        let LoopInput::Observed { seen, .. } = seen else { unreachable!("it was wanted") };
        assert_eq!(seen.world.shim, ShimSeen::Keeping { run: FIRST, process: PROCESS });
        keeps.join().unwrap();
    });
}
