//! The objects of the contract, made from what the daemon knows.

use crate::clock::Clock;
use crate::define::definition::mode_word;
use crate::engine::Engine;
use crate::engine::session::Tracked;
use pinfold_api::object::{Event, Inbox, LastExit, Message, Next, Session, Status, Turn};
use pinfold_core::life::{HolderSeen, Life};
use pinfold_core::{Now, State, Wall};
use pinfold_lock::time::rfc3339;
use pinfold_store::SessionId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every state, in the order in which people think of them.
pub(crate) const STATES: [State; 10] = [
    State::Idle,
    State::Starting,
    State::Running,
    State::Stopping,
    State::Backoff,
    State::Blocked,
    State::Held,
    State::Stopped,
    State::Failed,
    State::Archived,
];

/// Lists have so many bytes of an answer; the message itself has all of it.
const LISTED_ANSWER: usize = 4 << 10;

/// A moment as people read it.
pub(crate) fn time(at: Wall) -> String {
    rfc3339(u64::try_from(at.0).unwrap_or(0))
}

/// One session.
pub(crate) fn session(tracked: &Tracked, now: Now) -> Session {
    let policy = serde_json::to_value(&tracked.session.spec().policy).unwrap_or(Value::Null);
    Session { policy, ..brief(tracked, now) }
}

/// One session without its policy, which is half of it.
pub(crate) fn brief(tracked: &Tracked, now: Now) -> Session {
    let core = &tracked.session;
    let definition = &tracked.definition;
    let (process, since) = core.life().at_work().map(|(_, process, since)| (process, since)).unzip();
    let (done, failed) = core.inbox().settled();
    let runs = core.runs();
    Session {
        id: tracked.id.to_string(),
        name: tracked.name.clone(),
        agent: definition.agent.clone(),
        dir: definition.dir.display().to_string(),
        mode: mode_word(core.spec().mode).into(),
        state: core.state().word().into(),
        why: why(tracked, now),
        next: next(tracked, now),
        activity: "unknown".into(),
        activity_from: None,
        ready: tracked.ready && process.is_some(),
        status: tracked.status.clone().filter(|_| process.is_some()),
        pid: process.map(|process| process.pid),
        shim_pid: tracked.shim.as_ref().map(|shim| shim.pid),
        run: tracked.run.filter(|(run, _)| core.live_run() == Some(*run)).map(|(_, id)| id.to_string()),
        fence: process.map(|process| process.fence),
        started_at: since.map(|since| time(since.wall)),
        restarts: runs.count.saturating_sub(1),
        crashes: core.budgets().crashes,
        inbox: Inbox {
            queued: core.inbox().queued() as u64,
            in_flight: u64::from(core.inbox().in_flight().is_some()),
            done,
            failed,
            damaged: tracked.damaged,
        },
        consumers: core.consumers(),
        last_consumer_at: core.last_consumer().map(time),
        memory_bytes: core.memory_bytes(),
        swap_bytes: tracked.swap.filter(|_| process.is_some()),
        memory_limit_bytes: core.spec().memory_limit,
        holder: holder(core.life()),
        created_at: time(tracked.created_at),
        archived_at: archived(core.life()).map(time),
        parent: definition.parent.clone(),
        parent_id: definition.parent_id.map(|id| id.to_string()),
        tags: definition.tags.clone(),
        foreign: false,
        command: definition.command.clone(),
        vendor_session: definition.vendor_session.clone(),
        last_exit: core.last_exit().map(last_exit),
        contained: None,
        env: definition.env.all().into_keys().map(str::to_owned).collect(),
        dir_lock: definition.dir_lock,
        policy: Value::Null,
    }
}

fn last_exit(exit: &pinfold_core::LastExit) -> LastExit {
    LastExit {
        code: exit.exit.code(),
        signal: exit.exit.signal(),
        verdict: exit.verdict.word().into(),
        at: time(exit.at),
        uptime_ms: u64::try_from(exit.lived.as_millis()).unwrap_or(u64::MAX),
        last_line: exit.last_line.clone(),
    }
}

/// What is, and why; and what keeps it from being recorded.
pub(crate) fn why(tracked: &Tracked, now: Now) -> String {
    let mut why = tracked.session.explain(now);
    if tracked.damaged > 0 {
        let (count, name) = (tracked.damaged, &tracked.name);
        let messages = if count == 1 { "message is" } else { "messages are" };
        why = format!("{why}; {count} damaged {messages} not delivered, `pinfold inbox {name}` names them");
    }
    match &tracked.held_up {
        None => why,
        Some(problem) if tracked.stops_first => format!("{why}; not recorded yet: {problem}"),
        Some(problem) => format!("{why}; {problem}"),
    }
}

/// The pid of a session's agent.
pub(crate) fn pid(tracked: &Tracked) -> Option<u32> {
    tracked.session.life().at_work().map(|(_, process, _)| process.pid)
}

fn archived(life: &Life) -> Option<Wall> {
    if let Life::Archived { at } = life { Some(*at) } else { None }
}

fn holder(life: &Life) -> Option<Value> {
    if let Life::Blocked { holder, .. } = life { holder.as_deref().map(holder_value) } else { None }
}

/// Whoever holds what a session needs.
pub(crate) fn holder_value(holder: &HolderSeen) -> Value {
    json!({
        "resource": holder.resource,
        "pid": holder.pid,
        "command": holder.command,
        "session": holder.session,
        "since": holder.since.map(time),
    })
}

fn next(tracked: &Tracked, now: Now) -> Option<Next> {
    let deadline = tracked.session.next_deadline()?;
    let at = now.wall + deadline.at.since(now.boot);
    Some(Next { at: time(at), what: deadline.what.word().into() })
}

/// The daemon.
pub(crate) fn status(engine: &Engine, disk_bytes: u64, capabilities: BTreeMap<String, Value>) -> Status {
    let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
    for tracked in engine.sessions.values() {
        *sessions.entry(tracked.session.state().word().into()).or_default() += 1;
    }
    Status {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_ms: u64::try_from(engine.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        home: crate::define::home::shown(&engine.home.state),
        socket: crate::define::home::shown(&engine.socket),
        sessions,
        capabilities,
        disk_bytes,
        generation: engine.generation,
        damaged: engine.damaged.values().map(|damaged| damaged.name.clone()).collect(),
        database: engine.health.words(),
        unknown: engine.unknown.clone(),
        config_refused: engine.config_refused.clone(),
        socket_refused: engine.home.refused.clone(),
    }
}

/// One message of the session of this name, as lists have it: with the beginning of its answer.
pub(crate) fn listed(row: pinfold_store::Message, session: &str) -> Message {
    let mut message = message(row, session);
    if let Some(answer) = &mut message.answer {
        answer.truncate(answer.floor_char_boundary(LISTED_ANSWER));
        answer.shrink_to_fit();
    }
    message
}

/// One message of the session of this name.
pub(crate) fn message(row: pinfold_store::Message, session: &str) -> Message {
    if let Some(damage) = row.damage {
        return damaged_message(damage, session);
    }
    Message {
        answer_bytes: row.answer.as_ref().map(|answer| answer.len() as u64),
        id: row.id.to_string(),
        session: session.to_owned(),
        from: row.from,
        text: row.text,
        key: row.key,
        state: row.state.word().into(),
        tries: row.tries,
        enqueued_at: time(row.enqueued_at),
        done_at: row.done_at.map(time),
        answer: row.answer,
        failure: row.failure,
        turn: row.place.map(|place| Turn { run: place.run.0, from: place.from, to: place.to }),
        damaged: None,
    }
}

/// One that is not as it was written: named, and nothing of it is shown.
fn damaged_message(damage: pinfold_store::RowDamage, session: &str) -> Message {
    Message {
        id: damage.id,
        session: session.to_owned(),
        from: None,
        text: String::new(),
        key: None,
        state: "damaged".into(),
        tries: 0,
        enqueued_at: time(Wall(0)),
        done_at: None,
        answer: None,
        answer_bytes: None,
        failure: None,
        turn: None,
        damaged: Some(damage.problem),
    }
}

/// One audit record.
pub(crate) fn event(mut row: pinfold_store::Event) -> Event {
    Event {
        by: row.data.remove("by"),
        seq: row.seq,
        at: time(row.at),
        session: row.name,
        run: row.run,
        kind: row.kind,
        why: Some(row.why).filter(|why| !why.is_empty()),
        facts: row.data,
    }
}

/// One session by its id.
pub(crate) fn one(engine: &Engine, id: SessionId) -> Option<Session> {
    engine.sessions.get(&id).map(|tracked| session(tracked, Clock::new().now()))
}
