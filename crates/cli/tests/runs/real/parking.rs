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
