//! What can be read of the engine: views of sessions and of the daemon, metrics, and the handle through which
//! everything else reaches the loop.

use super::hand::{AGENT, FIRST, Room, SHIM, person, sending};
use crate::caller::Act;
use crate::engine::WhyNot;
use crate::engine::command::EngineCommand as Order;
use crate::engine::input::{LoopInput, Post};
use crate::output::written::Written;
use pinfold_core::decision::Answer;
use pinfold_core::event::{Ask, ConsumerKind};
use pinfold_core::exit::Exit;
use pinfold_core::{ConsumerId, Event, MessageId, State};
use pinfold_shim::Report;
use pinfold_store::{AuditEvent, Facts, SessionId, Trouble, Ulid};
use serde_json::json;
use std::time::Duration;

/// The sample of a metric with these labels.
fn measured(room: &Room, name: &str, label: Option<(&str, &str)>) -> f64 {
    let all = room.view().measured();
    let labels = |sample: &pinfold_api::object::Sample| {
        label.is_none_or(|(key, value)| sample.labels.get(key).map(String::as_str) == Some(value))
    };
    let mut found =
        all.iter().flat_map(|metric| &metric.samples).filter(|sample| sample.name == name && labels(sample));
    let first = found.next().unwrap_or_else(|| panic!("no sample {name} {label:?}"));
    first.value
}

/// The result of a question to the loop, while the loop is driven by hand.
async fn asked<T>(room: &mut Room, question: impl Future<Output = T>) -> T {
    let mut question = std::pin::pin!(question);
    std::future::poll_fn(|context| {
        assert!(question.as_mut().poll(context).is_pending(), "answered before the loop has heard of it");
        std::task::Poll::Ready(())
    })
    .await;
    room.settle();
    tokio::time::timeout(Duration::from_secs(60), question).await.expect("the loop answers")
}

#[test]
fn a_view_of_a_session_has_what_is_known_of_it() {
    let mut room = Room::new();
    let id = room.running("a", &json!({ "tags": ["t"] }));
    let known = room.view().session(id).unwrap();
    assert_eq!((known.id(), known.name(), known.state()), (id, "a", State::Running));
    assert_eq!(known.definition().tags, ["t"]);
    assert_eq!((known.shim_pid(), known.copy().shim_pid), (Some(SHIM), Some(SHIM)));
    assert_eq!(known.run().unwrap().0, FIRST);
    assert_eq!((known.copy().pid(), known.core().live_run()), (Some(AGENT), Some(FIRST)));
    let snapshot = known.snapshot();
    assert_eq!((snapshot.state, snapshot.connected, snapshot.unended), (State::Running, true, false));
    assert_eq!(*known.watch().borrow(), snapshot);
    assert!(room.view().session(SessionId(Ulid::new(1, 1))).is_none());
}

#[test]
fn whoever_watches_a_session_hears_of_what_is_durable() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    let mut watch = room.view().session(id).unwrap().watch();
    watch.mark_unchanged();
    room.desk.lock().held_up = true;
    room.stop(id);
    assert!(!watch.has_changed().unwrap());
    assert_eq!(room.view().session(id).unwrap().snapshot().state, State::Stopped);
    room.write();
    assert!(watch.has_changed().unwrap());
    assert_eq!(watch.borrow_and_update().state, State::Stopped);
    room.stop(id);
    assert!(!watch.has_changed().unwrap(), "nothing is new");
}

#[test]
fn sessions_are_read_in_their_order_and_after_one_that_need_not_be_there() {
    let mut room = Room::new();
    let mut made = Vec::new();
    for name in ["a", "b", "c"] {
        room.pass(Duration::from_secs(1));
        made.push(room.create(name, &json!({})));
    }
    let names =
        |after| room.view().sessions_after(after).map(|known| known.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(None), ["a", "b", "c"]);
    assert_eq!(names(Some(made[0])), ["b", "c"]);
    assert_eq!(names(Some(made[2])), [""; 0]);
    assert_eq!(names(Some(SessionId(Ulid::new(1, 1)))), ["a", "b", "c"]);
    assert_eq!(
        room.view().sessions().rev().map(|known| known.name().to_owned()).collect::<Vec<_>>(),
        ["c", "b", "a"]
    );
}

#[test]
fn the_numbers_of_a_configuration_are_those_of_agent_and_session() {
    let text = "[policy]\nhold_limit = \"9s\"\nchild_limit = 3\nchild_depth = 4\n\
                [agents.x]\ncommand = [\"x\"]\nmay = [\"attach\"]\n[agents.x.policy]\nchild_limit = 5\nconfined = \"allow\"\n\
                [retention]\nevents = \"10d\"\n";
    let room = Room::configured(text);
    let view = room.view();
    assert_eq!(view.hold_limit(), Duration::from_secs(9));
    assert_eq!((view.child_limits("x", "s"), view.child_limits("other", "s")), ((5, 4), (3, 4)));
    assert_eq!((view.lets_confined("x", "s"), view.lets_confined("other", "s")), (true, false));
    assert_eq!((view.may("x"), view.may("other")), (&[Act::Attach][..], &[][..]));
    assert_eq!((view.preset("x").is_some(), view.preset("other").is_none()), (true, true));
    assert_ne!(view.retention(), crate::define::config::Config::default().retention());
}

#[test]
fn the_daemon_says_what_it_is() {
    let mut room = Room::new();
    room.engine.home.refused = Some("too long".into());
    let view = room.view();
    let daemon = view.daemon();
    assert_eq!(
        (daemon.generation, daemon.state, daemon.socket),
        (1, &*room.engine.home.state, &*room.engine.socket)
    );
    assert_eq!((daemon.config_refused, daemon.socket_refused), (None, Some("too long")));
    assert!(daemon.up_for < Duration::from_secs(3600));
    let id = SessionId(Ulid::new(1, 1));
    assert_eq!(view.written_of(id), Written::Log(room.engine.home.log(id)));
    assert!(view.unknown().is_empty());
}

#[test]
fn changes_are_read_from_a_number_on_and_no_more_than_asked_for() {
    let mut room = Room::new();
    room.create("a", &json!({}));
    room.create("b", &json!({}));
    let latest = room.view().revision().1;
    assert_eq!(room.view().changes_after(0, 1).unwrap().len(), 1);
    assert_eq!(room.view().changes_after(0, 9).unwrap().len(), 2);
    assert!(room.view().changes_after(latest + 1, 9).is_none(), "a number from nowhere");
    let (mut changes, live) = room.view().watch_feed();
    changes.mark_unchanged();
    room.create("c", &json!({}));
    assert!(changes.has_changed().unwrap() && !live.has_changed().unwrap());
    assert_eq!((*changes.borrow(), *live.borrow()), (room.view().revision().1, 0));
}

#[test]
fn what_is_not_stored_is_no_change_of_a_session() {
    let mut room = Room::configured("[agents.w.policy]\nwatchdog = \"10s\"\n");
    let id = room.running("a", &json!({ "agent": "w" }));
    let (changes, live) = (room.view().revision().1, room.engine.feed.live.latest());
    room.pass(Duration::from_secs(1));
    room.says(id, Report::Notify { run: FIRST, notice: pinfold_shim::Notice::Watchdog });
    assert_eq!(room.view().revision().1, changes);
    assert!(room.engine.feed.live.latest() > live, "but of the run that is shown");
}

#[test]
fn sessions_and_messages_are_counted_by_state() {
    let mut room = Room::new();
    let a = room.running("a", &json!({ "turns": "done" }));
    room.create("b", &json!({}));
    room.send(a, "x", None);
    room.send(a, "y", None);
    room.send(a, "z", None);
    let sessions = |state| measured(&room, "pinfold_sessions", Some(("state", state)));
    assert_eq!((sessions("running"), sessions("idle"), sessions("failed")), (1.0, 1.0, 0.0));
    let messages = |state| measured(&room, "pinfold_messages", Some(("state", state)));
    assert_eq!((messages("queued"), messages("delivered"), messages("done")), (2.0, 1.0, 0.0));
}

#[test]
fn runs_that_end_fail_and_begin_again_are_counted() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    assert_eq!(measured(&room, "pinfold_restarts_total", None), 0.0, "the first run is no restart");
    room.ends(id, FIRST, Exit::Code(0));
    assert!(room.engine.sessions[&id].run.as_ref().unwrap().due.is_some());
    room.starts(id, super::hand::SECOND);
    assert_eq!(measured(&room, "pinfold_restarts_total", None), 1.0);
    assert_eq!(measured(&room, "pinfold_respawn_seconds_count", None), 1.0);
    assert_eq!(measured(&room, "pinfold_runs_total", Some(("verdict", "clean"))), 1.0);
    assert!(room.engine.sessions[&id].run.as_ref().unwrap().due.is_none());
    room.ends(id, super::hand::SECOND, Exit::Code(0));
    room.says(
        id,
        Report::StartFailed {
            run: pinfold_core::RunNumber(3),
            why: pinfold_shim::StartFailure::ProgramMissing,
        },
    );
    assert_eq!(measured(&room, "pinfold_start_failed_total", None), 1.0);
}

#[test]
fn memory_is_told_of_sessions_that_have_a_limit_and_of_the_daemon() {
    use crate::memory::MeterReading;
    use pinfold_core::rules::memory::{Reading, ReadingSource};
    let mut room = Room::new();
    let id = room.running("a", &json!({ "memory": 1000 }));
    room.create("b", &json!({}));
    room.tell(LoopInput::Memory {
        id,
        run: FIRST,
        read: MeterReading { reading: Reading::Bytes(123), source: ReadingSource::Sum, swap: 0 },
    });
    assert_eq!(measured(&room, "pinfold_session_memory_bytes", Some(("session", "a"))), 123.0);
    assert_eq!(measured(&room, "pinfold_session_memory_limit_bytes", Some(("session", "a"))), 1000.0);
    let all = room.view().measured();
    assert!(
        !all.iter()
            .flat_map(|metric| &metric.samples)
            .any(|sample| sample.labels.values().any(|value| value == "b"))
    );
    let own = measured(&room, "process_resident_memory_bytes", None);
    assert!(own > 1_000_000.0 && own % 1024.0 == 0.0, "{own}");
}

#[test]
fn only_those_who_hold_or_wait_are_counted_among_waiters() {
    let room = Room::new();
    room.engine.metrics.waiting.enter();
    room.engine.metrics.held.enter();
    room.engine.metrics.held.enter();
    assert_eq!(measured(&room, "pinfold_lock_waiters", Some(("for", "hold"))), 1.0);
    assert_eq!(measured(&room, "pinfold_lock_waiters", Some(("for", "run"))), 0.0);
    assert_eq!(measured(&room, "pinfold_http_holds", None), 2.0);
}

#[tokio::test(flavor = "current_thread")]
async fn a_handle_reads_asks_posts_and_orders() {
    let mut room = Room::new();
    let id = room.create("a", &json!({}));
    let handle = room.engine.handle.of(Some(person()));
    assert_eq!(handle.words().unwrap()["user"], json!(77));
    let count = asked(&mut room, handle.view(|view| view.sessions().count())).await;
    assert_eq!(count, Ok(1));
    let name = asked(&mut room, handle.session(id, |known| known.name().to_owned())).await;
    assert_eq!(name.as_deref(), Ok("a"));
    let nobody = asked(&mut room, handle.session(SessionId(Ulid::new(1, 1)), |known| known.id())).await;
    assert_eq!(nobody, Err(WhyNot::Gone));
    let asks = handle.ask(id, Event::Asked(Ask::Stop { grace: None }), Facts::default());
    assert_eq!(asked(&mut room, asks).await, Ok(Answer::Done));
    assert_eq!(room.last_event("stopped").data["by"]["user"], json!(77));
    let posts = handle.post(id, Post::Cancel { message: MessageId(1) });
    assert!(matches!(asked(&mut room, posts).await, Ok(Answer::Refused(_))));
    let posts = handle.post(id, sending("x", None));
    assert!(matches!(asked(&mut room, posts).await, Ok(Answer::Queued { .. })));
    assert_eq!(room.last_event("message_queued").data["by"]["user"], json!(77));
    let orders = handle.order(|done| Order::TakeAudit { done });
    assert_eq!(asked(&mut room, orders).await, Ok(()));
}

#[tokio::test(flavor = "current_thread")]
async fn what_no_session_decides_is_noted_in_the_name_of_who_asks_and_told_when_it_is_durable() {
    let mut room = Room::new();
    let handle = room.engine.handle.of(Some(person()));
    room.desk.lock().held_up = true;
    let (at, data) = (pinfold_core::Wall(1), serde_json::Map::new());
    let event = AuditEvent { at, session: None, run: None, kind: "locked".into(), why: "asked".into(), data };
    let mut durable = handle.note(event);
    room.settle();
    assert!(durable.try_recv().is_err());
    room.write();
    assert_eq!(durable.try_recv(), Ok(()));
    let stored = room.last_event("locked");
    assert_eq!((&stored.data["by"]["user"], stored.why.as_str()), (&json!(77), "asked"));
    assert_eq!(*room.engine.last_event.borrow(), stored.seq);
}

#[tokio::test(flavor = "current_thread")]
async fn whoever_gets_no_answer_hears_why() {
    let room = Room::new();
    let handle = room.engine.handle.clone();
    assert_eq!(handle.going_down(), WhyNot::GoingDown);
    handle.refuse(Some(WhyNot::Unrecordable(Trouble::Full)));
    assert_eq!(handle.going_down(), WhyNot::Unrecordable(Trouble::Full));
    handle.refuse(None);
    let mut ended = Box::pin(handle.ended());
    let early = std::future::poll_fn(|context| std::task::Poll::Ready(ended.as_mut().poll(context))).await;
    assert!(early.is_pending(), "the loop has not ended");
    drop(room);
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the loop has ended");
    assert_eq!(handle.view(|view| view.sessions().count()).await, Err(WhyNot::GoingDown));
}

#[test]
fn a_deadline_wakes_the_loop_as_long_as_something_is_waited_for() {
    let mut room = Room::new();
    assert_eq!(room.desk.lock().alarm, None);
    let id = room.running("a", &json!({}));
    room.says(id, Report::Exited(super::hand::exited(FIRST, Exit::Code(1), Duration::ZERO)));
    let due = room.engine.sessions[&id].session.next_deadline().unwrap().at;
    assert_eq!(room.desk.lock().alarm, Some(due));
    room.stop(id);
    assert_eq!(room.desk.lock().alarm, None, "a stopped session waits for nothing");
}

#[test]
fn a_deadline_that_passed_while_something_else_happened_is_met_all_the_same() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    room.says(id, Report::Exited(super::hand::exited(FIRST, Exit::Code(1), Duration::ZERO)));
    assert_eq!(room.state(id), State::Backoff);
    // The deadline has passed, and the clock has not been read yet.
    room.desk.lock().now += super::hand::LONG;
    room.says(id, Report::Leaving);
    assert_eq!(room.state(id), State::Backoff);
    room.pass(Duration::ZERO);
    assert_eq!(room.state(id), State::Starting);
}

#[test]
fn a_deadline_that_is_left_when_another_has_passed_is_waited_for() {
    let text = "[agents.w.policy]\nwatchdog = \"1h\"\ntakeover_deadline = \"10s\"\n";
    let mut room = Room::configured(text);
    let id = room.running("a", &json!({ "agent": "w", "interactive": ["ui"], "turns": "done" }));
    let consumer = ConsumerId(4);
    room.event(id, Event::ConsumerJoined { consumer, kind: ConsumerKind::Attach });
    room.send(id, "x", None);
    room.ask(id, Ask::Takeover { consumer, urgent: false });
    assert!(room.engine.sessions[&id].session.takeover().is_some(), "it waits for the turn");
    room.pass(Duration::from_secs(10));
    assert!(room.engine.sessions[&id].session.takeover().is_none(), "it was waited for long enough");
    let watchdog = room.engine.sessions[&id].session.next_deadline().unwrap().at;
    assert_eq!(room.desk.lock().alarm, Some(watchdog));
    room.pass(super::hand::LONG);
    assert_eq!(room.state(id), State::Stopping, "it gave no sign of life");
}

#[test]
fn what_happens_to_a_session_is_recorded_with_the_run_that_lived_then() {
    let mut room = Room::new();
    let id = room.running("a", &json!({}));
    let first = room.engine.sessions[&id].latest.map(|(_, run)| run.to_string());
    room.send(id, "x", None);
    assert_eq!(room.last_event("message_queued").run, first);
    let idle = room.create("b", &json!({ "mode": "always" }));
    room.stop(idle);
    room.send(idle, "x", None);
    assert_eq!(room.last_event("message_queued").run, None, "none lived");
}
