//! What was set for a running session and takes effect with its next run.

use super::word;
use pinfold_api::units;
use pinfold_core::{Session, Spec};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// Each option that changes with the next run, by its name and in the words that `new` takes; null if it is
/// removed.
pub(super) fn pending(core: &Session) -> Option<BTreeMap<String, Value>> {
    let (now, next) = (core.spec(), core.next_spec()?);
    let mut changes: BTreeMap<String, Value> = options(next)
        .into_iter()
        .zip(options(now))
        .filter(|(next, now)| next != now)
        .map(|((name, value), _)| (name.to_owned(), value.into()))
        .collect();
    changes.extend(numbers(next).into_iter().filter(|(name, value)| numbers(now).get(name) != Some(value)));
    (!changes.is_empty()).then_some(changes)
}

fn options(spec: &Spec) -> [(&'static str, Option<String>); 6] {
    let Spec { mode, policy, memory_limit, budget, turn_time, .. } = spec;
    [
        ("mode", Some(word::mode(*mode).word().to_owned())),
        ("memory", memory_limit.map(units::size_text)),
        ("idle", Some(units::duration_text(policy.idle_after))),
        ("stop_grace", Some(units::duration_text(policy.stop_grace))),
        ("budget", budget.map(|budget| units::money_text(budget.0))),
        ("turn_time", turn_time.map(|time| units::duration_text(Duration::from_millis(time)))),
    ]
}

/// The other numbers, which only config.toml sets, as `policy` shows them.
fn numbers(spec: &Spec) -> Map<String, Value> {
    let mut all = match serde_json::to_value(&spec.policy) {
        Ok(Value::Object(all)) => all,
        Ok(_) | Err(_) => Map::new(),
    };
    all.retain(|name, _| !["idle_after", "stop_grace"].contains(&name.as_str()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_core::decision::InForce;
    use pinfold_core::{Change, Mode};
    use serde_json::json;

    #[test]
    fn what_differs_is_named_as_it_is_set() {
        let mut before = Spec::new(Mode::Always);
        before.memory_limit = Some(1 << 30);
        let mut core = Session::new(before.clone());
        assert_eq!(pending(&core), None);
        let mut after = Spec { memory_limit: Some(2 << 30), ..before.clone() };
        after.policy.idle_after = Duration::from_secs(90);
        after.policy.crash_soft_limit = 3;
        core.apply(&Change::Spec(Box::new(after), InForce::NextRun));
        let told = json!(pending(&core));
        assert_eq!(told, json!({ "memory": "2G", "idle": "90s", "crash_soft_limit": 3 }));
        let unlimited = Spec { memory_limit: None, ..before };
        core.apply(&Change::Spec(Box::new(unlimited), InForce::NextRun));
        assert_eq!(json!(pending(&core)), json!({ "memory": null }));
    }
}
