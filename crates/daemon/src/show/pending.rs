//! What was set for a running session and takes effect with its next run.

use super::word;
use crate::define::definition::{COMMAND, Definition};
use crate::define::preset::{INPUTS, TURNS, word_of};
use pinfold_api::units;
use pinfold_core::{Session, Spec};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Each option that changes with the next run, by its name and in the words that `new` takes; null if it is
/// removed. `next` is the definition of that run, if it is another one.
pub(super) fn pending(
    core: &Session,
    (now, next): (&Definition, Option<&Definition>),
) -> Option<BTreeMap<String, Value>> {
    let spec = core.next_spec()?;
    let mut changes: BTreeMap<String, Value> = differences(options(core.spec()), options(spec)).collect();
    if let Some(next) = next {
        changes.extend(differences(settings(now), settings(next)));
        changes.extend(variables(now, next));
        changes.extend(conversation(now, next));
    }
    let before = numbers(core.spec());
    changes.extend(numbers(spec).into_iter().filter(|(name, value)| before.get(name) != Some(value)));
    (!changes.is_empty()).then_some(changes)
}

/// The options of the second list that differ from those of the first.
fn differences<const N: usize>(
    now: [(&'static str, Value); N],
    next: [(&'static str, Value); N],
) -> impl Iterator<Item = (String, Value)> {
    let both = next.into_iter().zip(now).filter(|(next, now)| next != now);
    both.map(|((name, value), _)| (name.to_owned(), value))
}

/// The options that the core decides by, in its own words or those of config.toml.
fn options(spec: &Spec) -> [(&'static str, Value); 4] {
    let Spec {
        mode,
        policy,
        memory_limit,
        // These take effect at once.
        budget: _,
        turn_time: _,
        // These follow from the definition.
        interactive: _,
        interactive_when_named: _,
        attach: _,
        run_per_message: _,
        setup: _,
        conversation: _,
    } = spec;
    [
        ("mode", json!(word::mode(*mode).word())),
        ("memory", json!(memory_limit.map(units::size_text))),
        ("idle", json!(units::duration_text(policy.idle_after))),
        ("stop_grace", json!(units::duration_text(policy.stop_grace))),
    ]
}

/// The other options. A new one stops the build here.
fn settings(definition: &Definition) -> [(&'static str, Value); 8] {
    let Definition {
        agent,
        command,
        dir,
        dir_lock,
        pty,
        input,
        turns,
        contended_if,
        // The core has these.
        mode: _,
        memory: _,
        idle: _,
        stop_grace: _,
        budget: _,
        turn_time: _,
        // These take effect at once.
        parent: _,
        parent_id: _,
        tags: _,
        // These have a comparison of their own.
        env: _,
        vendor_session: _,
        vendor_chosen: _,
        conversation: _,
        // These follow from the agent, or never change.
        protocol: _,
        exec: _,
        thread: _,
        interactive: _,
        interactive_when_named: _,
        attach: _,
        store: _,
        umask: _,
        worktree: _,
    } = definition;
    // The words of a preset are not an option.
    let own = (agent == COMMAND).then_some(command);
    [
        ("agent", json!(agent)),
        ("command", json!(own)),
        ("dir", json!(dir.display().to_string())),
        ("dir_lock", json!(dir_lock)),
        ("pty", json!(pty)),
        ("input", json!(word_of(&INPUTS, input))),
        ("turns", json!(word_of(&TURNS, turns))),
        ("contended_if", json!(contended_if)),
    ]
}

/// The names of the variables with another value.
fn variables(now: &Definition, next: &Definition) -> Option<(String, Value)> {
    let changed = now.env.differing(&next.env);
    (!changed.is_empty()).then(|| ("env".to_owned(), json!(changed)))
}

/// The conversation that the next run continues or begins, if a person chose it.
fn conversation(now: &Definition, next: &Definition) -> Option<(String, Value)> {
    if now.conversation == next.conversation {
        return None;
    }
    match next.vendor_session.as_ref().filter(|_| !next.vendor_chosen) {
        Some(id) => Some(("vendor_session".to_owned(), json!(id))),
        // Another agent has no part in the former conversation.
        None => (now.agent == next.agent).then(|| ("new_conversation".to_owned(), json!(true))),
    }
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
mod tests;
