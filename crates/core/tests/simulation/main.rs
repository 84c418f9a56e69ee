//! The simulation: whole cases in virtual time, with faults at every step and promises checked after each.
//!
//! `PINFOLD_SIM_STEPS` sets how many steps are played (default 2,000,000), `PINFOLD_SIM_SEED` where to begin.
//! A case that fails is cut down and printed as JSON; put it into `tests/incidents/` and it is played for ever.

#![expect(
    clippy::disallowed_methods,
    reason = "the simulation is a shell: it reads files and the environment"
)]
#![expect(clippy::disallowed_macros, reason = "the figures are printed for people")]
#![expect(clippy::panic, reason = "a test ends by panicking")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a checker looks only at what its promise is about")]

mod check;
mod daemon;
mod script;
mod world;

use check::Violation;
use daemon::Case;
use pinfold_core::life::{BlockedOn, Life};
use pinfold_core::{Event, Mode};
use script::{Step, Work};
use std::collections::BTreeMap;
use std::path::Path;
use world::{Holder, SESSIONS, directory_of};

/// Long enough for several lives of each session, short enough to cut down quickly.
const STEPS_IN_A_CASE: usize = 1_000;

/// The rules that a full run must get to, by name.
const RULES: &str = "
    blocked cannot_start ended_as_asked ended_unneeded failed going_down holder_gone lock_busy
    locks_taken memory_high memory_to_confirm memory_unreadable message_cancelled message_done
    message_ends_the_wait message_failed message_known message_queued message_requeued
    message_retried message_taken needed not_needed noted nothing_due over_memory_limit parking
    person_archived person_interrupted person_purged person_purged_others person_restarted
    person_restored person_started person_stopped ran_once recovery_adopted recovery_as_it_was
    recovery_machine_restarted recovery_shim_mute recovery_starts_again refused restart_at_once
    shim_gone stale started takeover_begins takeover_caller_gone takeover_ended takeover_failed
    takeover_joins takeover_timed_out takeover_waits vendor_session_busy wait_over waiting
    watchdog_silent
";

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not `{text}`")),
        Err(_) => default,
    }
}

/// How often each rule decided.
type Tally = BTreeMap<String, u64>;

/// Plays a script, then lets the world come to rest.
fn play(steps: &[Step]) -> Result<Tally, (usize, Violation)> {
    let mut case = Case::new();
    for (at, step) in steps.iter().enumerate() {
        case.play(*step).map_err(|violation| (at, violation))?;
    }
    let fail = |violation| (steps.len(), violation);
    come_to_rest(&mut case).map_err(fail)?;
    at_rest(&case).map_err(fail)?;
    Ok(case.checker.rules)
}

/// No more faults: the daemon runs, agents do their turns, timers fire. This must end.
fn come_to_rest(case: &mut Case) -> Result<(), Violation> {
    case.room.broken = [None; SESSIONS];
    if case.daemon.as_ref().is_some_and(|daemon| daemon.closing) {
        case.kill_daemon();
    }
    case.start_daemon();
    for _ in 0..20_000 {
        let busy = work_off(case)?;
        if !busy && !let_time_pass(case)? {
            return Ok(());
        }
    }
    let lives: Vec<_> = case.disk.iter().map(|session| session.life().clone()).collect();
    Err(format!("a quiet world does not come to rest: {lives:?}"))
}

fn work_off(case: &mut Case) -> Result<bool, Violation> {
    let mut busy = false;
    for session in 0..SESSIONS {
        let turn = case.room.agent(session).and_then(|agent| agent.turn);
        let Some(daemon) = &case.daemon else { return Ok(false) };
        if !daemon.pending[session].is_empty() {
            case.take(session)?;
        } else if !daemon.actions[session].is_empty() {
            case.perform(session);
        } else if let Some((_, taken)) = turn {
            case.agent_works(session, if taken { Work::Answers } else { Work::Takes });
        } else {
            continue;
        }
        busy = true;
        case.go_on()?;
    }
    Ok(busy)
}

/// Jumps to the next deadline. Agents feed their watchdogs, so those never come due.
fn let_time_pass(case: &mut Case) -> Result<bool, Violation> {
    for session in 0..SESSIONS {
        if case.room.agent(session).is_some_and(|agent| agent.ends_at.is_some()) {
            case.play(Step::Pass(1_000))?;
            return Ok(true);
        }
    }
    for session in 0..SESSIONS {
        case.agent_works(session, Work::Feeds);
        case.take(session)?;
    }
    let Some((session, at)) = case.next_deadline() else { return Ok(false) };
    let wait = at.0.saturating_sub(case.room.boot);
    case.play(Step::Pass(u32::try_from(wait).unwrap_or(u32::MAX)))?;
    case.enqueue(session, Event::Ticked);
    case.take(session)?;
    case.go_on()?;
    Ok(true)
}

/// What a world that came to rest looks like.
fn at_rest(case: &Case) -> Result<(), Violation> {
    let daemon = case.daemon.as_ref().expect("started above");
    for (at, session) in daemon.sessions.iter().enumerate() {
        let agent = case.room.shims[at].as_ref().and_then(|shim| shim.agent.as_ref().map(|agent| agent.run));
        case.checker.all_ends_known(at, agent)?;
        let what = |problem: &str| Err(format!("session {at} at rest: {problem}: {session:?}"));
        match session.life() {
            Life::Starting { .. } | Life::Stopping { .. } => return what("still under way"),
            Life::Backoff { .. } => return what("still waiting"),
            Life::Running { .. } | Life::Held { .. } if agent != session.live_run() => {
                return what("not running");
            }
            Life::Running { .. } if session.inbox().queued() > 0 => return what("a message was left"),
            Life::Idle { .. } if session.inbox().queued() > 0 => return what("a message was forgotten"),
            Life::Idle { since } if session.spec().mode == Mode::Always && restored(*since) => {}
            Life::Idle { .. } if session.spec().mode == Mode::Always => return what("not running"),
            Life::Blocked { on: BlockedOn::OurLock, .. } if nobody_holds(case, at) => {
                return what("blocked by nobody");
            }
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

fn restored(since: pinfold_core::life::IdleSince) -> bool {
    since == pinfold_core::life::IdleSince::Restored
}

fn nobody_holds(case: &Case, session: usize) -> bool {
    case.room.directory_locks[directory_of(session)] == Holder::Nobody
        && case.room.session_locks[session] == Holder::Nobody
}

/// Cuts a failing script down: drops ever smaller pieces as long as it still fails.
fn shrink(steps: &[Step]) -> Vec<Step> {
    let mut kept = steps.to_vec();
    let mut piece = kept.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < kept.len() {
            let mut candidate = kept.clone();
            candidate.drain(at..(at + piece).min(kept.len()));
            if play(&candidate).is_err() {
                kept = candidate;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    kept
}

fn report(seed: u64, steps: &[Step], violation: &Violation) -> String {
    let small = shrink(steps);
    let (_, smallest) = play(&small).expect_err("shrinking keeps the failure");
    let json = serde_json::to_string(&small).expect("steps are plain data");
    format!("seed {seed}: {violation}\n\ncut down to {} steps: {smallest}\n\nreplay: {json}\n", small.len())
}

#[test]
fn every_promise_holds_through_every_fault() {
    let wanted = number("PINFOLD_SIM_STEPS", 2_000_000) as usize;
    let first = number("PINFOLD_SIM_SEED", 1);
    let cases = wanted.div_ceil(STEPS_IN_A_CASE) as u64;
    let mut tally = Tally::new();
    for seed in first..first + cases {
        let steps = script::generate(seed, STEPS_IN_A_CASE);
        match play(&steps) {
            Ok(rules) => rules.into_iter().for_each(|(rule, times)| *tally.entry(rule).or_default() += times),
            Err((_, violation)) => panic!("{}", report(seed, &steps, &violation)),
        }
    }
    let decisions: u64 = tally.values().sum();
    println!(
        "{cases} cases from seed {first}, {wanted} steps, {decisions} decisions by {} rules",
        tally.len()
    );
    println!("{tally:?}");
    // A short run for a quick look need not get everywhere; a full one that does not has gone blind.
    if wanted >= 1_000_000 {
        let missing: Vec<&str> = RULES.split_whitespace().filter(|rule| !tally.contains_key(*rule)).collect();
        assert!(missing.is_empty(), "the simulation never got to {missing:?}");
    }
}

#[test]
fn recorded_incidents_stay_solved() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/incidents");
    let mut played = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder of incidents") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("an incident is text");
        let steps: Vec<Step> =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if let Err((_, violation)) = play(&steps) {
            panic!("{}: {violation}", path.display());
        }
        played += 1;
    }
    assert!(played > 0, "no incident in {}", folder.display());
}
