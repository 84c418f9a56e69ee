//! `why` reads like a sentence from a colleague: one of each kind, word for word.

#![expect(clippy::needless_pass_by_value, reason = "events are made on the spot")]

use pinfold_core::event::{Ask, ConsumerKind, MessageEvent, RunEvent, Shim};
use pinfold_core::life::{HolderSeen, Process};
use pinfold_core::{
    Boot, ConsumerId, Ended, Event, Exit, MessageId, Mode, Now, Policy, RunNumber, Session, Spec, Wall,
};
use std::time::Duration;

struct Told {
    session: Session,
    now: Now,
}

impl Told {
    fn new(mode: Mode) -> Told {
        Told::with(Spec { interactive: true, ..Spec::new(mode) })
    }

    fn with(spec: Spec) -> Told {
        let now = Now { wall: Wall(1_700_000_000_000), boot: Boot(1_000_000), ..Now::default() };
        let mut told = Told { session: Session::new(spec), now };
        told.hear(Event::Created);
        told
    }

    fn hear(&mut self, event: Event) -> &mut Told {
        let _ = self.session.handle(&event, self.now);
        self
    }

    fn pass(&mut self, seconds: u64) -> &mut Told {
        let wait = Duration::from_secs(seconds);
        (self.now.boot, self.now.wall) = (self.now.boot + wait, self.now.wall + wait);
        self
    }

    fn of_run(&mut self, event: RunEvent) -> &mut Told {
        let run = self.session.live_run().unwrap_or(RunNumber(0));
        self.hear(Event::Run { run, event })
    }

    fn runs(&mut self) -> &mut Told {
        self.of_run(RunEvent::Reserved).of_run(RunEvent::Started(Process { pid: 7, fence: 1 }))
    }

    fn exits(&mut self, code: i32) -> &mut Told {
        let last_line = (code != 0).then(|| "RuntimeError: boom".into());
        let ended = Ended { last_line, ..Ended::new(Exit::Code(code), Duration::from_millis(500)) };
        self.of_run(RunEvent::Exited { ended, shim: Shim::Standing, holder: None })
    }

    fn sends(&mut self, message: u128) -> &mut Told {
        self.hear(Event::Message(MessageEvent::Sent { message: MessageId(message), key: None, known: None }))
    }

    fn why(&self) -> String {
        self.session.explain(self.now)
    }
}

#[test]
fn rest_says_what_would_wake_it() {
    let mut chat = Told::new(Mode::OnDemand);
    assert_eq!(chat.why(), "idle: not needed yet");
    chat.sends(1).runs();
    let run = chat.session.live_run().expect("a run");
    let how = pinfold_core::event::TurnEnd::Answered;
    chat.hear(Event::Message(MessageEvent::TurnEnded { run, message: MessageId(1), how }));
    assert_eq!(chat.pass(60).why(), "running for 1 min; parks in 4 min unless it is needed");
    chat.pass(240).hear(Event::Ticked);
    assert_eq!(chat.why(), "stopping: it is not needed");
    chat.exits(0);
    assert_eq!(chat.why(), "idle: parked, because it was not needed for its idle time");
    chat.hear(Event::Asked(Ask::Stop { grace: None }));
    assert_eq!(chat.why(), "stopped by a person; `start` runs it again");
    chat.sends(2);
    assert_eq!(chat.why(), "stopped by a person; `start` runs it again; a message is queued");
    chat.hear(Event::Asked(Ask::Archive));
    assert_eq!(chat.why(), "archived: kept as a record; `restore` brings it back; a message is queued");
}

#[test]
fn work_says_for_whom() {
    let mut chat = Told::new(Mode::OnDemand);
    chat.sends(1);
    assert_eq!(chat.why(), "starting: taking its locks; a message is queued");
    chat.of_run(RunEvent::Reserved);
    assert_eq!(chat.why(), "starting: it has its locks; a message is queued");
    chat.of_run(RunEvent::Started(Process { pid: 7, fence: 1 }));
    assert_eq!(chat.pass(180).why(), "running for 3 min; a turn is under way");
    for consumer in [1, 2] {
        chat.hear(Event::ConsumerJoined { consumer: ConsumerId(consumer), kind: ConsumerKind::Watch });
    }
    assert_eq!(chat.why(), "running for 3 min; 2 consumers are connected; a turn is under way");
    chat.hear(Event::Asked(Ask::Takeover { consumer: ConsumerId(1), urgent: false }));
    let wait = "a takeover waits 30 s more for the turn to end";
    assert_eq!(
        chat.why(),
        format!("running for 3 min; 2 consumers are connected; a turn is under way; {wait}")
    );
}

#[test]
fn one_consumer_is_said_as_one_and_only_where_something_runs() {
    let mut chat = Told::new(Mode::OnDemand);
    let watch = Event::ConsumerJoined { consumer: ConsumerId(1), kind: ConsumerKind::Watch };
    chat.hear(watch);
    assert_eq!(chat.why(), "idle: not needed yet");
    chat.hear(Event::Asked(Ask::Start)).runs();
    assert_eq!(chat.pass(3).why(), "running for 3 s; a consumer is connected");
    chat.hear(Event::Asked(Ask::Stop { grace: None }));
    assert_eq!(chat.pass(4).why(), "stopping for 4 s: a person stopped it");
}

#[test]
fn waits_say_what_for_and_how_long() {
    let mut agent = Told::new(Mode::Always);
    agent.runs().exits(1);
    assert_eq!(
        agent.why(),
        "waiting: exited with 1 after 500 ms: `RuntimeError: boom`; crashed once, next run in 1 s"
    );
    agent.pass(1).hear(Event::Ticked).of_run(RunEvent::Started(Process { pid: 8, fence: 2 })).exits(1);
    assert_eq!(
        agent.why(),
        "waiting: exited with 1 after 500 ms: `RuntimeError: boom`; crashed 2 times in a row, next run in 1 s"
    );
    agent.pass(1).hear(Event::Ticked).of_run(RunEvent::Started(Process { pid: 9, fence: 3 })).exits(75);
    assert_eq!(
        agent.why(),
        "waiting: another process holds what it needs (last: exited with 75 after 500 ms: `RuntimeError: boom`); next run in 10 s"
    );
}

#[test]
fn a_blocked_session_names_whoever_is_known() {
    let holder = |pid, command: Option<&str>, session: Option<&str>, since| {
        Some(Box::new(HolderSeen {
            resource: "/src/api".into(),
            pid,
            command: command.map(Into::into),
            session: session.map(Into::into),
            since,
        }))
    };
    let ago = Some(Wall(1_700_000_000_000 - 180_000));
    let rows = [
        (None, "blocked: another process holds its lock"),
        (holder(None, None, None, None), "blocked: `/src/api` is held by an unknown process"),
        (holder(Some(4711), None, None, None), "blocked: `/src/api` is held by another program (pid 4711)"),
        (
            holder(Some(4711), Some("claude"), None, ago),
            "blocked: `/src/api` is held by another program (pid 4711, claude, for 3 min)",
        ),
        (
            holder(Some(4711), Some("claude"), Some("api"), ago),
            "blocked: `/src/api` is held by session `api` (pid 4711, claude, for 3 min)",
        ),
    ];
    for (holder, expected) in rows {
        let mut agent = Told::new(Mode::Always);
        agent.of_run(RunEvent::LockBusy { holder });
        assert_eq!(agent.why(), expected);
    }
}

#[test]
fn failure_says_what_happened_and_what_to_do() {
    let mut agent = Told::new(Mode::Always);
    agent.runs().exits(78);
    assert_eq!(
        agent.why(),
        "failed: exited with 78 after 500 ms: `RuntimeError: boom`; `start` or a message tries again"
    );
    let mut agent = Told::with(Spec {
        policy: Policy { crash_hard_limit: 1, ..Policy::default() },
        ..Spec::new(Mode::Always)
    });
    agent.runs().exits(1);
    assert_eq!(
        agent.why(),
        "failed: exited with 1 after 500 ms: `RuntimeError: boom`; crashed once; `start` or a message tries again"
    );
}

#[test]
fn a_session_is_the_same_after_a_trip_through_the_store() {
    let mut agent = Told::new(Mode::Always);
    agent.runs().sends(1).exits(1);
    agent.sends(2);
    let text = serde_json::to_string(&agent.session).expect("plain data");
    let mut loaded: Session = serde_json::from_str(&text).expect("what was written can be read");
    // Messages are stored one by one and put back.
    loaded.refill(agent.session.inbox().waiting());
    assert_eq!(loaded, agent.session.as_stored());
}

#[test]
fn what_ran_once_and_ended_well_was_not_stopped_by_a_person() {
    let mut agent = Told::new(Mode::Once);
    agent.runs().exits(0);
    assert_eq!(agent.why(), "stopped: its one run exited with 0 after 500 ms; `start` runs it again");
    let mut agent = Told::new(Mode::Once);
    agent.runs().hear(Event::Asked(Ask::Stop { grace: None })).exits(143);
    let run = "its one run exited with 143 after 500 ms: `RuntimeError: boom`";
    assert_eq!(agent.why(), format!("stopped by a person: {run}; `start` runs it again"));
}

#[test]
fn whoever_watched_a_run_end_is_told_how_and_what_comes() {
    let boom = "exited with 1 after 500 ms: `RuntimeError: boom`";
    let mut agent = Told::new(Mode::Always);
    assert_eq!(agent.session.explain_end(agent.now), None);
    agent.runs().exits(1);
    let end = |agent: &Told| agent.session.explain_end(agent.now).expect("a run has ended");
    assert_eq!(end(&agent), format!("{boom}; crashed once, next run in 1 s"));
    agent.pass(1).hear(Event::Ticked);
    assert_eq!(end(&agent), format!("{boom}; it runs again"));
    let mut once = Told::new(Mode::Once);
    once.runs().exits(1);
    assert_eq!(end(&once), format!("{boom}; it needs attention"));
    let mut chat = Told::new(Mode::OnDemand);
    chat.hear(Event::Asked(Ask::Start)).runs().pass(600).hear(Event::Ticked).exits(0);
    assert_eq!(end(&chat), "exited with 0 after 500 ms");
}

#[test]
fn an_outline_explains_itself_as_its_session_does_and_lists_no_message() {
    let mut chat = Told::new(Mode::OnDemand);
    chat.sends(1).runs().sends(2).sends(3).pass(5);
    let outline = chat.session.outline();
    assert_eq!(outline.explain(chat.now), chat.why());
    assert_eq!(outline.inbox().queued(), chat.session.inbox().queued());
    assert_eq!((outline.inbox().queued(), outline.inbox().waiting().count()), (2, 0));
    assert_eq!(outline.outline().inbox().queued(), 2, "an outline of an outline counts as well");
}
