//! A quiet world: it comes to rest, and then everything is where it belongs.

use super::case::Case;
use super::check::Violation;
use super::script::{Step as Common, Work};
use super::steps::Step;
use super::world::{Holder, SESSIONS, directory_of};
use crate::engine::Closing;
use pinfold_core::life::{BlockedOn, IdleSince, Life};
use pinfold_core::session::Upcoming;
use pinfold_core::{Boot, Mode};
use std::time::Duration;

/// No more faults: the daemon runs, agents do their turns, timers fire. This must end.
pub(super) fn come_to_rest(case: &mut Case) -> Result<(), Violation> {
    case.shared.lock().room.broken = [None; SESSIONS];
    (case.shared.lock().stillborn, case.contradicts) = ([false; SESSIONS], false);
    case.play(Step::Disk { full: false })?;
    if case.daemon.as_ref().is_some_and(|daemon| !matches!(daemon.engine.closing, Closing::No)) {
        case.kill_daemon();
    }
    if case.daemon.as_ref().is_some_and(|daemon| daemon.engine.sessions.len() < SESSIONS) {
        // A session that contradicted itself too often is left alone until the next daemon.
        case.kill_daemon();
    }
    case.start_daemon()?;
    for _ in 0..20_000 {
        let busy = work_off(case)?;
        if !busy && !let_time_pass(case)? {
            return Ok(());
        }
        if case.daemon.is_none() {
            // A `down` that was on its way has come to its end.
            case.start_daemon()?;
        }
    }
    Err("a quiet world does not come to rest".to_owned())
}

pub(super) fn work_off(case: &mut Case) -> Result<bool, Violation> {
    let mut busy = case.perform_commit()?;
    for session in 0..SESSIONS {
        let turn = case.shared.lock().room.agent(session).and_then(|agent| agent.turn);
        if case.take(session)? {
            busy = true;
        } else if waits(case, session) {
            case.perform(session, 0)?;
            busy = true;
        } else if let Some((_, taken)) = turn {
            case.agent_works(session, if taken { Work::Answers } else { Work::Takes });
            busy = true;
        }
        case.go_on()?;
    }
    Ok(busy)
}

fn waits(case: &Case, session: usize) -> bool {
    let machine = case.shared.lock();
    let told = machine.links[session].as_ref().is_some_and(|link| !link.commands.is_empty());
    told || !machine.jobs[session].is_empty()
}

/// Jumps to the next deadline. Agents feed their watchdogs, so those never come due.
fn let_time_pass(case: &mut Case) -> Result<bool, Violation> {
    for session in 0..SESSIONS {
        if case.shared.lock().room.agent(session).is_some_and(|agent| agent.ends_at.is_some()) {
            case.play(Step::Common(Common::Pass(1_000)))?;
            return Ok(true);
        }
    }
    for session in 0..SESSIONS {
        case.agent_works(session, Work::Feeds);
        case.collect();
        while case.take(session)? {}
    }
    let Some(wait) = next(case) else { return Ok(false) };
    case.play(Step::Common(Common::Pass(u32::try_from(wait).unwrap_or(u32::MAX))))?;
    case.tick()?;
    case.go_on()?;
    Ok(true)
}

/// How long until something comes due: a deadline of the core, or a reminder.
fn next(case: &Case) -> Option<u64> {
    let daemon = case.daemon.as_ref()?;
    let machine = case.shared.lock();
    let due = daemon.engine.sessions.values().filter_map(|tracked| {
        let deadline = tracked.session.next_deadline()?;
        (deadline.what != Upcoming::Watchdog).then_some(deadline.at)
    });
    let deadline = due.min().map(|Boot(at)| at.saturating_sub(machine.room.boot));
    let now = machine.began + Duration::from_millis(machine.room.awake);
    let reminder = machine.reminders.iter().map(|(at, _)| at.saturating_duration_since(now)).min();
    let reminder = reminder.map(|wait| wait.as_millis() as u64 + 1);
    deadline.into_iter().chain(reminder).min()
}

/// What a world that came to rest looks like.
pub(super) fn at_rest(case: &Case) -> Result<(), Violation> {
    let Some(daemon) = &case.daemon else { return Err("no daemon at rest".to_owned()) };
    if case.unanswered() > 0 {
        return Err(format!("{} questions were never answered", case.unanswered()));
    }
    for (at, id) in case.ids.iter().enumerate() {
        let Some(tracked) = daemon.engine.sessions.get(id) else {
            return Err(format!("session {at} is gone"));
        };
        let machine = case.shared.lock();
        let agent =
            machine.room.shims[at].as_ref().and_then(|shim| shim.agent.as_ref().map(|agent| agent.run));
        let daemon_holds = machine.room.session_locks[at] == Holder::Daemon(at)
            || machine.room.directory_locks[directory_of(at)] == Holder::Daemon(at);
        let free = machine.is_free(at);
        drop(machine);
        case.checker.all_ends_known(at, agent)?;
        let session = &tracked.session;
        let what = |problem: &str| Err(format!("session {at} at rest: {problem}: {session:?}"));
        if daemon_holds {
            return what("its locks are held, and nobody starts");
        }
        if !tracked.pending.is_empty() {
            return what("a decision waits for its record");
        }
        let queued = session.inbox().queued() > 0;
        match session.life() {
            Life::Starting { .. } | Life::Stopping { .. } => return what("still under way"),
            Life::Backoff { .. } => return what("still waiting"),
            Life::Running { .. } | Life::Held { .. } if agent != session.live_run() => {
                return what("not running");
            }
            Life::Running { .. } | Life::Idle { .. } if queued => return what("a message was left"),
            Life::Idle { since: IdleSince::Restored } if session.spec().mode == Mode::Always => {}
            Life::Idle { .. } if session.spec().mode == Mode::Always => return what("not running"),
            Life::Blocked { on: BlockedOn::OurLock, .. } if free => return what("blocked by nobody"),
            Life::Running { .. }
            | Life::Held { .. }
            | Life::Idle { .. }
            | Life::Blocked { .. }
            | Life::Stopped
            | Life::Failed { .. }
            | Life::Archived { .. } => {
                if agent.is_some() && session.live_run().is_none() {
                    return what("an agent runs that should not");
                }
            }
        }
    }
    Ok(())
}
