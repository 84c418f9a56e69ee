//! Parking: an agent that is not needed is ended, unless it has work of its own under way.

use super::gate::Gate;
use super::stage::Stage;

/// How often another session parks meanwhile.
const TIMES: usize = 2;

/// Waits until a session has been parked this many times.
fn is_parked(stage: &Stage, name: &str, times: usize) {
    let parked = || stage.world.events_of(name, "run_exited").len() >= times;
    stage.world.until("a session that is parked", || parked().then_some(()));
}

/// What a park ended, by its event.
fn ended_by_park(stage: &Stage) -> Vec<String> {
    let parked = stage.world.events_of("api", "parked");
    let ended = parked.last().expect("it was parked")["ended"].as_array().cloned().unwrap_or_default();
    ended.iter().map(|process| process["command"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn codex_is_not_parked_while_a_command_that_outlived_its_turn_runs_and_is_after_it() {
    let stage = Stage::new("codex");
    let gate = Gate::new(&stage);
    stage.ok(&["new", "api", "--agent", "codex", "--idle", "500ms"]);
    stage.ok(&["new", "other", "--agent", "codex", "--idle", "500ms", "--dir", &stage.text("other")]);
    let message = stage.sends(&format!("TURN-one RUN={};;", gate.wait()));
    stage.is_asked();
    stage.ok(&["answer", "api", "allow"]);
    // Codex lets go of the command after ten seconds, and goes on with its turn.
    gate.is_reached(&stage);
    stage.comes_to(&message, "done");
    let pid = stage.pid();
    for times in 1..=TIMES {
        stage.ok(&["send", "other", &format!("TURN-other{times}"), "--wait"]);
        is_parked(&stage, "other", times);
    }
    assert_eq!((stage.pid(), &stage.show()["activity"]), (pid, &"working".into()));
    assert!(stage.world.events_of("api", "run_exited").is_empty());
    gate.let_go();
    is_parked(&stage, "api", 1);
    assert_eq!(ended_by_park(&stage), Vec::<String>::new());
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    stage.shown("not parked with a background task under way");
}

/// What a command itself leaves in the background is in no protocol. It ends with the run, and is named.
fn what_is_left_in_the_background_is_named(agent: &'static str) {
    let stage = Stage::new(agent);
    stage.ok(&["new", "api", "--agent", agent, "--idle", "500ms"]);
    let leaves = "TURN-one RUN=sh -c 'sleep 4711 >/dev/null 2>&1 </dev/null & echo on';;";
    let message = stage.sends(leaves);
    if agent != "pi" {
        stage.is_asked();
        stage.ok(&["answer", "api", "allow"]);
    }
    stage.comes_to(&message, "done");
    is_parked(&stage, "api", 1);
    stage.world.until("its event", || stage.world.events_of("api", "parked").first().cloned());
    assert!(ended_by_park(&stage).contains(&"sleep 4711".to_owned()), "{:?}", ended_by_park(&stage));
    let events = stage.ok(&["events", "--session", "api"]).stdout;
    assert!(events.contains("ended `sleep 4711` (pid "), "{events}");
    stage.shown("parked: the event names what was left in the background");
}

#[test]
fn what_claude_left_in_the_background_is_named_when_it_is_parked() {
    what_is_left_in_the_background_is_named("claude");
}

#[test]
fn what_pi_left_in_the_background_is_named_when_it_is_parked() {
    what_is_left_in_the_background_is_named("pi");
}

#[test]
fn what_opencode_left_in_the_background_is_named_when_it_is_parked() {
    what_is_left_in_the_background_is_named("opencode");
}

#[test]
fn claude_is_not_parked_while_a_background_task_is_under_way_and_is_after_it() {
    let stage = Stage::new("claude");
    let gate = Gate::new(&stage);
    stage.ok(&["new", "api", "--agent", "claude", "--idle", "500ms"]);
    stage.ok(&["new", "other", "--agent", "claude", "--idle", "500ms", "--dir", &stage.text("other")]);
    let message = stage.sends(&format!("TURN-one TASK={};;", gate.wait()));
    stage.is_asked();
    stage.ok(&["answer", "api", "allow"]);
    stage.comes_to(&message, "done");
    gate.is_reached(&stage);
    let pid = stage.pid();
    // Another session without a task, with the same idle time and idle later, is parked meanwhile, twice.
    for times in 1..=TIMES {
        stage.ok(&["send", "other", &format!("TURN-other{times}"), "--wait"]);
        is_parked(&stage, "other", times);
    }
    assert_eq!(stage.model.shown_with("other2"), ["other1", "other2"]);
    stage.shown("parked, and the next message has the context");
    assert_eq!(stage.pid(), pid);
    assert!(stage.world.events_of("api", "run_exited").is_empty());
    let before = stage.model.requests();
    gate.let_go();
    stage.model.is_asked_again(before);
    is_parked(&stage, "api", 1);
    assert_eq!(stage.says("TURN-two"), "reply to two");
    assert_eq!(stage.model.shown_with("two"), ["one", "two"]);
    assert_eq!(stage.model.times_told("two"), 1);
    stage.shown("not parked with a background task under way");
}
