use super::*;
use crate::engine::tests::hand::definition;
use pinfold_core::decision::InForce;
use pinfold_core::{Change, Mode};
use std::time::Duration;

/// A session whose next run has the second definition.
fn told(now: &Value, next: &Value) -> Value {
    let (now, next) = (definition(now), definition(next));
    let settings = crate::define::config::Settings::default();
    let mut core = Session::new(now.spec(&settings));
    core.apply(&Change::Spec(Box::new(next.spec(&settings)), InForce::NextRun));
    json!(pending(&core, (&now, Some(&next))))
}

#[test]
fn what_differs_is_named_as_it_is_set() {
    let mut before = Spec::new(Mode::Always);
    before.memory_limit = Some(1 << 30);
    let own = definition(&json!({}));
    let mut core = Session::new(before.clone());
    assert_eq!(pending(&core, (&own, None)), None);
    let mut after = Spec { memory_limit: Some(2 << 30), ..before.clone() };
    after.policy.idle_after = Duration::from_secs(90);
    after.policy.crash_soft_limit = 3;
    core.apply(&Change::Spec(Box::new(after), InForce::NextRun));
    let told = json!(pending(&core, (&own, None)));
    assert_eq!(told, json!({ "memory": "2G", "idle": "90s", "crash_soft_limit": 3 }));
    let unlimited = Spec { memory_limit: None, ..before };
    core.apply(&Change::Spec(Box::new(unlimited), InForce::NextRun));
    assert_eq!(json!(pending(&core, (&own, None))), json!({ "memory": null }));
}

#[test]
fn every_option_that_waits_for_the_next_run_is_named() {
    let rows = [
        (json!({ "agent": "codex" }), json!({ "agent": "codex", "command": null })),
        (json!({ "command": ["sh", "-c", "x"] }), json!({ "command": ["sh", "-c", "x"] })),
        (json!({ "dir": "/tmp", "dir_lock": true }), json!({ "dir": "/tmp", "dir_lock": true })),
        (json!({ "mode": "once" }), json!({ "mode": "once" })),
        (json!({ "memory": 1 << 30 }), json!({ "memory": "1G" })),
        (json!({ "idle": 60_000 }), json!({ "idle": "1m" })),
        (json!({ "stop_grace": 60_000 }), json!({ "stop_grace": "1m" })),
        (json!({ "pty": true }), json!({ "pty": true })),
        (json!({ "input": "json", "turns": "done" }), json!({ "input": "json", "turns": "done" })),
        (json!({ "env": { "LANG": "C" } }), json!({ "env": ["LANG"] })),
        (json!({ "conversation": 1, "vendor_session": "x" }), json!({ "vendor_session": "x" })),
        (json!({ "conversation": 1 }), json!({ "new_conversation": true })),
        (
            json!({ "conversation": 1, "vendor_session": "x", "vendor_chosen": true }),
            json!({ "new_conversation": true }),
        ),
        (json!({ "tags": ["t"], "parent": "p" }), json!(null)),
        (json!({ "budget": 5_000_000_000_u64, "turn_time": 60_000 }), json!(null)),
        (json!({}), json!(null)),
    ];
    for (next, expected) in rows {
        assert_eq!(told(&json!({}), &next), expected, "{next}");
    }
    let ends = told(&json!({ "memory": 1 << 30 }), &json!({}));
    assert_eq!(ends, json!({ "memory": null }), "what is removed is null");
}
