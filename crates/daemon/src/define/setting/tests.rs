use super::*;
use crate::define::config::Config;
use crate::engine::tests::hand::definition;
use serde_json::{Value, json};

fn request(fields: Value) -> NewSession {
    serde_json::from_value(fields).unwrap()
}

fn preset(agent: &str) -> Option<Preset> {
    Config::default().preset(agent)
}

/// A session of this agent, as `new` defines it.
fn of(agent: &str) -> Definition {
    let fields = request(json!({ "name": "s", "agent": agent, "caller_dir": "/" }));
    Definition::new(&fields, preset(agent).as_ref()).unwrap()
}

fn set(own: &mut Definition, fields: Value, now: Conversation) -> Result<(), CannotSet> {
    let request = request(fields);
    let agent = request.agent.clone().unwrap_or_else(|| own.agent.clone());
    own.set(&request, preset(&agent).as_ref(), now)
}

#[test]
fn another_agent_brings_what_a_new_session_has_of_it() {
    for (from, to) in [("claude", "codex"), ("codex", "claude"), ("claude", "gemini"), ("opencode", "pi")] {
        let (mut own, new) = (of(from), of(to));
        own.tags = vec!["t".to_owned()];
        set(&mut own, json!({ "agent": to }), Conversation::None).unwrap();
        assert_eq!((own.agent.as_str(), own.conversation, &own.tags[..]), (to, 1, &["t".to_owned()][..]));
        let of_preset = |of: &Definition| {
            let mut of = of.clone();
            // Each session has an id of its own.
            let id = of.vendor_session.take().unwrap_or_default();
            let plain =
                |words: &[String]| words.iter().map(|word| word.replace(&id, "ID")).collect::<Vec<_>>();
            let words = if id.is_empty() { of.command.clone() } else { plain(&of.command) };
            (
                words,
                of.protocol,
                of.exec,
                of.thread,
                of.pty,
                of.input,
                of.turns,
                of.vendor_chosen,
                of.dir_lock,
            )
        };
        assert_eq!(of_preset(&own), of_preset(&new), "{from} to {to}");
    }
}

#[test]
fn an_agent_becomes_a_command_and_back_and_needs_one() {
    let mut own = of("claude");
    let none = set(&mut own.clone(), json!({ "agent": "command" }), Conversation::None).unwrap_err();
    assert_eq!(none, CannotSet::Bad(BadDefinition::NoCommand { agent: "command".to_owned() }));
    set(&mut own, json!({ "agent": "command", "command": ["cat"] }), Conversation::None).unwrap();
    assert_eq!((&own.command[..], own.vendor_session.as_deref()), (&["cat".to_owned()][..], None));
    own.dir_lock = false;
    set(&mut own, json!({ "agent": "claude" }), Conversation::None).unwrap();
    assert!(own.dir_lock && own.vendor_chosen, "as `new` does: {own:?}");
    let unknown = set(&mut own, json!({ "agent": "nobody" }), Conversation::None).unwrap_err();
    assert_eq!(unknown, CannotSet::Bad(BadDefinition::UnknownAgent { agent: "nobody".to_owned() }));
}

#[test]
fn a_conversation_of_another_vendor_is_not_given_up_without_a_word() {
    let own = of("claude");
    let rows = [
        (json!({ "agent": "codex" }), false),
        (json!({ "agent": "codex", "new_conversation": true }), true),
        (json!({ "agent": "codex", "vendor_session": "x" }), true),
        (json!({ "agent": "claude" }), true),
        (json!({ "memory": "1G" }), true),
    ];
    for (fields, allowed) in rows {
        let answer = set(&mut own.clone(), fields.clone(), Conversation::Begun);
        let refused = CannotSet::OtherVendor { from: "claude".to_owned(), to: "codex".to_owned() };
        assert_eq!(answer, if allowed { Ok(()) } else { Err(refused) }, "{fields}");
        set(&mut own.clone(), fields, Conversation::None).unwrap();
    }
}

#[test]
fn a_variable_that_moves_the_conversations_of_a_vendor_is_not_changed_in_a_conversation() {
    let rows = [
        ("claude", "CLAUDE_CONFIG_DIR", false),
        ("codex", "CODEX_HOME", false),
        ("pi", "PI_CODING_AGENT_DIR", false),
        ("pi", "PI_CODING_AGENT_SESSION_DIR", false),
        ("gemini", "HOME", false),
        ("claude", "ANTHROPIC_MODEL", true),
    ];
    for (agent, name, allowed) in rows {
        let mut own = of(agent);
        set(&mut own, json!({ "env": { "HOME": "/home/u", name: "/home/u/a" } }), Conversation::None)
            .unwrap();
        let moved = |more: Value| {
            let mut fields = json!({ "env": { name: "/home/u/b" } });
            fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            fields
        };
        let answer = set(&mut own.clone(), moved(json!({})), Conversation::Begun);
        match answer {
            Ok(()) => assert!(allowed, "{agent} {name}"),
            Err(CannotSet::OtherStore { .. }) => assert!(!allowed, "{agent} {name}"),
            Err(other) => panic!("{agent} {name}: {other:?}"),
        }
        // The same value again, a conversation of its own there, and a session without one.
        set(&mut own.clone(), json!({ "env": { name: "/home/u/a" } }), Conversation::Begun).unwrap();
        set(&mut own.clone(), moved(json!({ "new_conversation": true })), Conversation::Begun).unwrap();
        set(&mut own.clone(), moved(json!({ "vendor_session": "x" })), Conversation::Begun).unwrap();
        set(&mut own, moved(json!({})), Conversation::None).unwrap();
    }
}

#[test]
fn a_conversation_begins_anew_or_is_the_named_one() {
    let mut own = of("claude");
    let first = own.vendor_session.clone();
    set(&mut own, json!({ "new_conversation": true }), Conversation::Begun).unwrap();
    assert!(own.vendor_session != first && own.vendor_chosen && own.conversation == 1);
    set(&mut own, json!({ "vendor_session": "x" }), Conversation::Begun).unwrap();
    assert_eq!((own.vendor_session.as_deref(), own.vendor_chosen, own.conversation), (Some("x"), false, 2));
    let mut learns = of("codex");
    set(&mut learns, json!({ "vendor_session": "x" }), Conversation::None).unwrap();
    set(&mut learns, json!({ "new_conversation": true }), Conversation::Begun).unwrap();
    assert_eq!((learns.vendor_session, learns.conversation), (None, 2));
    let both = json!({ "new_conversation": true, "vendor_session": "x" });
    let refused = set(&mut own, both, Conversation::None).unwrap_err();
    assert_eq!(refused, CannotSet::Bad(BadDefinition::TwoConversations));
}

#[test]
fn an_agent_with_a_command_of_its_own_is_not_given_another() {
    let agent = || "claude".to_owned();
    let twice = set(&mut of("claude"), json!({ "command": ["cat"] }), Conversation::None).unwrap_err();
    assert_eq!(twice, CannotSet::Bad(BadDefinition::CommandTwice { agent: agent() }));
    let terminal = set(&mut of("claude"), json!({ "pty": true }), Conversation::None).unwrap_err();
    assert_eq!(terminal, CannotSet::Bad(BadDefinition::ProtocolOnTerminal { agent: agent() }));
}

#[test]
fn other_locks_or_another_command_are_another_setup() {
    let own = definition(&json!({}));
    let rows = [
        (json!({}), false),
        (json!({ "mode": "once", "memory": 1, "idle": 1, "stop_grace": 1 }), false),
        (json!({ "budget": 1, "turn_time": 1, "tags": ["t"], "parent": "p", "umask": 7 }), false),
        (json!({ "input": "json", "turns": "done", "env": { "LANG": "C" } }), false),
        (json!({ "agent": "x" }), true),
        (json!({ "command": ["dog"] }), true),
        (json!({ "command": ["cat", ""] }), true),
        (json!({ "dir": "/tmp" }), true),
        (json!({ "dir_lock": true }), true),
        (json!({ "vendor_session": "x" }), true),
        (json!({ "conversation": 1 }), true),
        (json!({ "store": "/x" }), true),
        (json!({ "env": { "HOME": "/x" } }), true),
        (json!({ "pty": true }), true),
        (json!({ "protocol": "stream-json" }), true),
    ];
    for (more, differs) in rows {
        assert_eq!(definition(&more).setup() != own.setup(), differs, "{more}");
    }
    // It is stored: another value would cost every session its shim once.
    assert_eq!(own.setup(), ShimSetup(4_612_828_075_089_175_870));
}
