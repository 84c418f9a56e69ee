//! A quiet world: it comes to rest, and then everything is in its place.

use super::case::Case;
use super::check::Violation;
use super::machine::VirtualMachine;
use super::script::{CommonStep as Common, Work};
use super::steps::SimulationStep;
use super::world::{SESSIONS, SimulatedHolder, directory_of};
use crate::engine::Closing;
use crate::engine::session::Tracked;
use pinfold_core::life::{BlockedOn, IdleSince, Life};
use pinfold_core::session::Upcoming;
use pinfold_core::{Boot, Mode, RunNumber, Session};
use std::time::Duration;

/// No more faults: the daemon runs, agents do their turns, timers fire. This must end.
pub(super) fn come_to_rest(case: &mut Case) -> Result<(), Violation> {
    case.shared.lock().room.broken = [None; SESSIONS];
    (case.shared.lock().births, case.contradicts) = ([None; SESSIONS], false);
    case.play(SimulationStep::Disk { full: false })?;
    if case.daemon.as_ref().is_some_and(|daemon| !matches!(daemon.engine.closing, Closing::No)) {
        case.kill_daemon();
    }
    case.start_daemon()?;
    for _ in 0..20_000 {
        if case.daemon.as_ref().is_some_and(|daemon| daemon.engine.sessions.len() < SESSIONS) {
            // A session that contradicted itself too often is set aside until the next daemon.
            case.kill_daemon();
            case.start_daemon()?;
        }
        let busy = work_off(case)?;
        if !busy && !let_time_pass(case)? {
            return Ok(());
        }
        if case.daemon.is_none() {
            // A `down` that was under way has completed.
            case.start_daemon()?;
        }
    }
    let sessions = case.daemon.iter().flat_map(|daemon| daemon.engine.sessions.values());
    let lives: Vec<_> = sessions.map(|tracked| tracked.session.life()).collect();
    let machine = case.shared.lock();
    Err(format!("a quiet world does not come to rest: {lives:?}\n{:?}", machine.room))
}

pub(super) fn work_off(case: &mut Case) -> Result<bool, Violation> {
    let mut busy = case.perform_commit()?;
    for session in 0..SESSIONS {
        let turn = case.shared.lock().room.agent(session).and_then(|agent| agent.turn);
        if case.take(session)? {
            busy = true;
        } else if case.shared.lock().is_busy(session) {
            // A look that finds nothing is repeated: others must get their turn.
            case.perform(session, 3)?;
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

/// Jumps to the next deadline. Agents feed their watchdogs, so those never come due.
fn let_time_pass(case: &mut Case) -> Result<bool, Violation> {
    for session in 0..SESSIONS {
        if case.shared.lock().room.agent(session).is_some_and(|agent| agent.ends_at.is_some()) {
            case.play(SimulationStep::Common(Common::Pass(1_000)))?;
            return Ok(true);
        }
    }
    for session in 0..SESSIONS {
        case.agent_works(session, Work::Feeds);
        case.collect();
        while case.take(session)? {}
    }
    let (deadline, reminder) = next(case);
    let Some(wait) = deadline.into_iter().chain(reminder).min() else { return Ok(false) };
    case.play(SimulationStep::Common(Common::Pass(u32::try_from(wait).unwrap_or(u32::MAX))))?;
    let rings = case.shared.lock().rings();
    if rings {
        case.tick()?;
    } else if deadline == Some(wait) {
        return Err("a deadline passed, and no alarm rang".to_owned());
    }
    case.go_on()?;
    Ok(true)
}

/// How long until the next deadline of the core, and until the next reminder.
fn next(case: &Case) -> (Option<u64>, Option<u64>) {
    let Some(daemon) = &case.daemon else { return (None, None) };
    let machine = case.shared.lock();
    let due = daemon.engine.sessions.values().filter_map(|tracked| {
        let deadline = tracked.session.next_deadline()?;
        (deadline.what != Upcoming::Watchdog).then_some(deadline.at)
    });
    let deadline =
        due.chain(daemon.engine.accounts.due).min().map(|Boot(at)| at.saturating_sub(machine.room.boot));
    let now = machine.began + Duration::from_millis(machine.room.awake);
    let reminder = machine.reminders.iter().map(|(at, _)| at.saturating_duration_since(now)).min();
    let reminder = reminder.map(|wait| wait.as_millis() as u64 + 1);
    (deadline, reminder)
}

/// Checks a world that came to rest.
pub(super) fn at_rest(case: &Case) -> Result<(), Violation> {
    let Some(daemon) = &case.daemon else { return Err("no daemon at rest".to_owned()) };
    if case.unanswered() > 0 {
        return Err(format!("{} questions were never answered", case.unanswered()));
    }
    if !case.looks.is_empty() {
        return Err(format!("{} requests to look were never answered", case.looks.len()));
    }
    for (at, id) in case.ids.iter().enumerate() {
        let Some(tracked) = daemon.engine.sessions.get(id) else {
            return Err(format!("session {at} is gone"));
        };
        let session = &tracked.session;
        let told = |problem: String| format!("session {at} at rest: {problem}: {session:?}");
        nothing_held(&case.shared.lock(), at, tracked).map_err(told)?;
        let agent = case.shared.lock().room.agent(at).map(|agent| agent.run);
        case.checker.all_ends_known(at, agent)?;
        let guest = case.shared.lock().room.agent(at).and_then(|agent| agent.guest);
        if guest.is_some() != session.has_guest() {
            return Err(told(format!("its guest is {guest:?}")));
        }
        let free = case.shared.lock().is_free(at);
        settled(session, agent, free).map_err(|problem| told(problem.to_owned()))?;
    }
    Ok(())
}

/// Checks that the daemon holds only what it needs of a session.
fn nothing_held(machine: &VirtualMachine, at: usize, tracked: &Tracked) -> Result<(), String> {
    let locks = [machine.room.session_locks[at], machine.room.directory_locks[directory_of(at)]];
    if locks.contains(&SimulatedHolder::Daemon(at)) {
        return Err("its locks are held, and nobody starts".to_owned());
    }
    let watched: Vec<_> = machine.watched.iter().filter(|(of, _)| *of == at).map(|(_, run)| *run).collect();
    if !watched.iter().copied().eq(tracked.session.life().at_work().map(|(run, ..)| run)) {
        return Err(format!("the memory of {watched:?} is watched"));
    }
    if !tracked.pending.is_empty() {
        return Err("a decision waits for its record".to_owned());
    }
    Ok(())
}

/// Checks that nothing of a session is under way, and that it runs if it should.
fn settled(session: &Session, agent: Option<RunNumber>, free: bool) -> Result<(), &'static str> {
    let queued = session.inbox().queued() > 0;
    match session.life() {
        Life::Starting { .. } | Life::Stopping { .. } => Err("still under way"),
        Life::Backoff { .. } => Err("still waiting"),
        Life::Running { .. } | Life::Held { .. } if agent != session.live_run() => Err("not running"),
        Life::Running { .. } | Life::Idle { .. } if queued => Err("a message was left"),
        Life::Idle { since: IdleSince::Restored } if session.spec().mode == Mode::Always => Ok(()),
        Life::Idle { .. } if session.spec().mode == Mode::Always => Err("not running"),
        Life::Blocked { on: BlockedOn::OurLock, .. } if free => Err("blocked by nobody"),
        Life::Running { .. }
        | Life::Held { .. }
        | Life::Idle { .. }
        | Life::Blocked { .. }
        | Life::Stopped
        | Life::Failed { .. }
        | Life::Archived { .. } => {
            let unwanted = agent.is_some() && session.live_run().is_none();
            if unwanted { Err("an agent runs that should not") } else { Ok(()) }
        }
    }
}
