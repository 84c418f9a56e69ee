//! A session as the object of the API.

use super::pending::pending;
use super::{activity, usage, word};
use crate::clock::time;
use crate::define::definition::Definition;
use crate::define::preset::protocol_word;
use crate::engine::{Hindrances, SessionView};
use pinfold_api::object::{Inbox, LastExit, Next, Request, Session};
use pinfold_api::word::RequestKind;
use pinfold_core::guest::GuestStage;
use pinfold_core::life::{HolderSeen, Life};
use pinfold_core::session::Upcoming;
use pinfold_core::{Now, State, Wall, talk};
use pinfold_shim::Flow;
use rustix::io::Errno;
use serde_json::{Value, json};

/// One session.
pub(crate) fn session(view: &SessionView, now: Now) -> Session {
    let policy = serde_json::to_value(&view.core.spec().policy).unwrap_or(Value::Null);
    Session { policy, ..brief(view, now) }
}

/// One session without its policy, which is half of it.
pub(crate) fn brief(view: &SessionView, now: Now) -> Session {
    object(view, &view.core, &view.definition, now)
}

/// What is known of its agent's activity, if that says something.
fn known(core: &pinfold_core::Session) -> Option<&talk::Standing> {
    core.standing().filter(|_| core.activity() != talk::Activity::Unknown)
}

fn object(view: &SessionView, core: &pinfold_core::Session, definition: &Definition, now: Now) -> Session {
    let (process, since) = core.life().at_work().map(|(_, process, since)| (process, since)).unzip();
    Session {
        id: view.id.to_string(),
        name: view.name.clone(),
        agent: definition.agent.clone(),
        dir: definition.dir.display().to_string(),
        mode: word::mode(core.spec().mode),
        state: word::state(core.state()),
        why: why(core, view.hindrances(), now),
        next: next(view, now),
        activity: word::activity(core.activity()),
        activity_from: activity::source(core, protocol_word(definition.protocol)),
        activity_since: known(core).and_then(|standing| standing.since).map(time),
        waits_for: known(core).and_then(|standing| standing.detail.clone()),
        last_output_at: view.printed_at.filter(|_| process.is_some()).map(time),
        request: core.talk().open().next().map(request).or_else(|| hold_request(core)),
        requests: core.talk().open().count() + usize::from(hold_request(core).is_some()),
        ready: view.ready && process.is_some(),
        status: view.status.clone().filter(|_| process.is_some()),
        pid: view.pid(),
        shim_pid: view.shim_pid,
        guest_pid: guest_pid(core),
        run: view.run.filter(|(run, _)| core.live_run() == Some(*run)).map(|(_, id)| id.to_string()),
        fence: process.map(|process| process.fence),
        started_at: since.map(|since| time(since.wall)),
        restarts: core.runs().count.saturating_sub(1),
        crashes: core.budgets().crashes,
        inbox: inbox(view),
        consumers: core.consumers(),
        last_consumer_at: core.last_consumer().map(time),
        memory_bytes: core.memory_bytes(),
        swap_bytes: view.swap.filter(|_| process.is_some()),
        memory_limit_bytes: core.spec().memory_limit,
        holder: holder(core.life()),
        created_at: time(view.created_at),
        archived_at: archived(core.life()).map(time),
        parent: definition.parent.clone(),
        parent_id: definition.parent_id.map(|id| id.to_string()),
        tags: definition.tags.clone(),
        command: definition.command.clone(),
        vendor_session: vendor_session(core, definition),
        account: view.account.as_deref().map(str::to_owned),
        usage: usage::of_session(core),
        last_exit: core.last_exit().map(last_exit),
        pending: pending(core, (definition, view.next.as_deref())),
        seen: core.is_seen(),
        env: definition.env.all().into_keys().map(str::to_owned).collect(),
        dir_lock: definition.dir_lock,
        ..Session::default()
    }
}

/// The vendor conversation that it is in, or was to be in.
fn vendor_session(core: &pinfold_core::Session, definition: &Definition) -> Option<String> {
    core.talk().conversation(definition.vendor_session.as_deref()).map(str::to_owned)
}

fn guest_pid(core: &pinfold_core::Session) -> Option<u32> {
    match core.guest()?.stage {
        GuestStage::Here { pid } => Some(pid),
        GuestStage::Asked | GuestStage::Gone { .. } => None,
    }
}

/// What a person is asked if its account or its budget keeps it from its turns.
fn hold_request(core: &pinfold_core::Session) -> Option<Request> {
    let hold = core.hold().filter(|hold| hold.asks && core.state() == State::Blocked)?;
    let kind = RequestKind::from(hold.kind.asked_as()?);
    Some(Request { id: kind.to_string(), kind, title: hold.to_string(), since: time(hold.since) })
}

/// A request of its agent.
fn request(request: &talk::Request) -> Request {
    Request {
        id: request.number.to_string(),
        kind: word::request_kind(request.kind),
        title: request.title.clone(),
        since: time(request.since),
    }
}

fn inbox(view: &SessionView) -> Inbox {
    let inbox = view.core.inbox();
    let (done, failed) = inbox.settled();
    Inbox {
        queued: inbox.queued() as u64,
        in_flight: u64::from(inbox.in_flight().is_some()),
        done,
        failed,
        damaged: view.damaged,
    }
}

fn last_exit(exit: &pinfold_core::LastExit) -> LastExit {
    let has_status = exit.exit.code().or(exit.exit.signal()).is_some();
    LastExit {
        code: exit.exit.code(),
        signal: exit.exit.signal(),
        end: (!has_status).then(|| exit.exit.word().to_owned()),
        verdict: word::verdict(exit.verdict),
        at: time(exit.at),
        uptime_ms: u64::try_from(exit.lived.as_millis()).unwrap_or(u64::MAX),
        last_line: exit.last_line.clone(),
    }
}

/// Its state and the reason; and why it cannot be recorded, if so.
pub(crate) fn why(core: &pinfold_core::Session, hindrances: Hindrances<'_>, now: Now) -> String {
    let Hindrances { name, damaged, held_up, stops_first, flow, failed, printed_at, stray_mark, begun_again } =
        hindrances;
    let mut why = core.explain_as(name, now);
    if let Some(does) = activity::words(core, (printed_at, begun_again), now) {
        why = format!("{why}; {does}");
    }
    // The end of a run that was for one message is already reported.
    if let Some(reason) = failed.filter(|_| !core.spec().run_per_message) {
        why = format!("{why}; its last turn failed: {reason}");
    }
    if let Some(request) = core.talk().open().next() {
        let (number, title) = (request.number, &request.title);
        why = format!("{why}; it asks: {title} ({number}), `pinfold answer {name} allow` or `deny` answers");
    }
    if let Some(request) = hold_request(core) {
        why = format!("{why}; `pinfold answer {name} allow` lets it go on ({})", request.id);
    }
    match flow {
        Flow::Flows => {}
        Flow::Full => why = format!("{why}; it waits: too much of its output was not heard yet"),
        Flow::Broken { errno } => {
            why = format!(
                "{why}; it waits: its output cannot be written ({})",
                Errno::from_raw_os_error(errno)
            );
        }
    }
    if damaged > 0 {
        let messages = if damaged == 1 { "message is" } else { "messages are" };
        why = format!("{why}; {damaged} damaged {messages} not delivered, `pinfold inbox {name}` names them");
    }
    if stray_mark {
        why.push_str(
            "; it printed `PINFOLD_DONE` outside a turn: put the message's ID after that word, or an answer can be \
             stored under the wrong message",
        );
    }
    match held_up {
        None => why,
        Some(problem) if stops_first => format!("{why}; not recorded yet: {problem}"),
        Some(problem) => format!("{why}; {problem}"),
    }
}

fn archived(life: &Life) -> Option<Wall> {
    if let Life::Archived { at } = life { Some(*at) } else { None }
}

fn holder(life: &Life) -> Option<Value> {
    life.holder().map(holder_value)
}

/// The holder of what a session needs.
pub(crate) fn holder_value(holder: &HolderSeen) -> Value {
    json!({
        "resource": holder.resource,
        "pid": holder.pid,
        "command": holder.command,
        "session": holder.session,
        "since": holder.since.map(time),
    })
}

fn next(view: &SessionView, now: Now) -> Option<Next> {
    // What keeps it from its turns comes next, whatever happens to its run meanwhile.
    if view.core.state() == State::Blocked
        && let Some(hold) = view.core.hold()
    {
        let until = hold.until?;
        let at = now.wall + until.boot.since(now.boot);
        return Some(Next { at: time(at), what: word::upcoming(Upcoming::Reset) });
    }
    let deadline = view.core.next_deadline()?;
    let at = now.wall + deadline.at.since(now.boot);
    Some(Next { at: time(at), what: word::upcoming(deadline.what) })
}

#[cfg(test)]
mod tests;
