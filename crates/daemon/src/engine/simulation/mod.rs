//! The loop that ships, in the virtual machine room: whole cases in virtual time, with faults at every
//! effect.
//!
//! The room (`world`) has its own physics; locks, shims and their births, the store's thread, clocks and
//! reminders are virtual ports in it. `PINFOLD_SIM_STEPS` sets how many steps are played (default 2,000,000),
//! `PINFOLD_SIM_SEED` where to begin. A failing case is shrunk and printed as JSON; put it into `incidents/`
//! and it is replayed forever.

#![expect(clippy::wildcard_enum_match_arm, reason = "a checker looks only at what its promise is about")]

mod attaches;
mod case;
mod check;
mod directed;
mod ground;
mod machine;
mod nursery;
mod outside;
mod ports;
mod rest;
mod script;
mod shim;
mod steps;
pub(in crate::engine) mod witness;
mod world;

use case::Case;
use check::Violation;
use ground::Ground;
use std::collections::BTreeMap;
use std::rc::Rc;
use steps::SimulationStep;

/// Long enough for several lives of each session, short enough to shrink quickly.
const STEPS_IN_A_CASE: usize = 1_000;
pub(super) const MEMORY_LIMIT: u64 = 1000;

/// The rules that a full run must reach, by name; nothing reports yet that a vendor session turned out to be
/// held.
const RULES: &str = "
    blocked cannot_start ended_as_asked ended_unneeded failed going_down guest_ended guest_started holder_gone lock_busy
    locks_taken memory_high memory_to_confirm memory_unreadable message_cancelled message_done
    message_ends_the_wait message_failed message_known message_queued message_requeued
    message_retried message_taken needed not_needed noted nothing_due over_memory_limit parking
    person_archived person_interrupted person_purged person_purged_others person_restarted
    person_restored person_started person_stopped ran_once recovery_adopted recovery_as_it_was
    recovery_machine_restarted recovery_shim_mute recovery_starts_again refused restart_at_once
    shim_gone stale started takeover_begins takeover_caller_gone takeover_ended takeover_failed
    takeover_joins takeover_timed_out takeover_waits tries_used_up wait_over waiting watchdog_silent
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
fn play(ground: &Rc<Ground>, steps: &[SimulationStep]) -> Result<Tally, (usize, Violation)> {
    let noted = steps.iter().any(|step| matches!(step, SimulationStep::Disk { .. }));
    let mut case = Case::new(ground, noted).map_err(|violation| (0, violation))?;
    for (at, step) in steps.iter().enumerate() {
        case.play(*step).map_err(|violation| (at, violation))?;
    }
    let fail = |violation| (steps.len(), violation);
    rest::come_to_rest(&mut case).map_err(fail)?;
    rest::at_rest(&case).map_err(fail)?;
    Ok(case.checker.rules)
}

/// Shrinks a failing script: drops ever smaller pieces as long as it still fails.
fn shrink(ground: &Rc<Ground>, steps: &[SimulationStep]) -> Vec<SimulationStep> {
    let mut kept = steps.to_vec();
    let mut piece = kept.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < kept.len() {
            let mut candidate = kept.clone();
            candidate.drain(at..(at + piece).min(kept.len()));
            if play(ground, &candidate).is_err() {
                kept = candidate;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    kept
}

fn report(ground: &Rc<Ground>, seed: u64, steps: &[SimulationStep], violation: &Violation) -> String {
    let small = shrink(ground, steps);
    let (_, smallest) = play(ground, &small).expect_err("shrinking keeps the failure");
    let json = serde_json::to_string(&small).expect("steps are plain data");
    format!("seed {seed}: {violation}\n\ncut down to {} steps: {smallest}\n\nreplay: {json}\n", small.len())
}

#[test]
fn every_promise_holds_through_every_fault_of_the_world_around_the_loop() {
    let wanted = number("PINFOLD_SIM_STEPS", 2_000_000) as usize;
    let first = number("PINFOLD_SIM_SEED", 1);
    let cases = wanted.div_ceil(STEPS_IN_A_CASE) as u64;
    let ground = Rc::new(Ground::new());
    let mut tally = Tally::new();
    println!("{cases} cases from seed {first}");
    for seed in first..first + cases {
        let steps = steps::generate(seed, STEPS_IN_A_CASE);
        match play(&ground, &steps) {
            Ok(rules) => rules.into_iter().for_each(|(rule, times)| *tally.entry(rule).or_default() += times),
            Err((_, violation)) => panic!("{}", report(&ground, seed, &steps, &violation)),
        }
    }
    let decisions: u64 = tally.values().sum();
    println!("{wanted} steps, {decisions} decisions by {} rules", tally.len());
    println!("{tally:?}");
    // A short run need not reach every rule; a full run that does not has gone blind.
    if wanted >= 1_000_000 {
        let missing: Vec<&str> = RULES.split_whitespace().filter(|rule| !tally.contains_key(*rule)).collect();
        assert!(missing.is_empty(), "the simulation never got to {missing:?}");
    }
}

#[test]
fn recorded_incidents_stay_solved() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/simulation/incidents");
    let ground = Rc::new(Ground::new());
    let mut played = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder of incidents") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("an incident is text");
        let steps: Vec<SimulationStep> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if let Err((_, violation)) = play(&ground, &steps) {
            panic!("{}: {violation}", path.display());
        }
        played += 1;
    }
    assert!(played > 0, "no incident in {}", folder.display());
}
