//! Agents whose handshake fails, through the real binaries: they exit with 0, and that is not a clean end.

use crate::world::World;
use serde_json::json;

/// An ACP agent that answers its second line with an error, and exits when told to.
fn refuses(world: &World, error: &str) -> String {
    let script = world.path("agent.sh");
    let can =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;
    let lines = [can, &format!(r#"{{"jsonrpc":"2.0","id":2,"error":{error}}}"#)];
    let says = lines.map(|line| format!("read -r line\nprintf '%s\\n' '{line}'\n")).concat();
    std::fs::write(&script, format!("{says}cat >/dev/null\n")).unwrap();
    script.display().to_string()
}

impl World {
    /// How often the agent of the session was started.
    fn starts_of_a(&self) -> usize {
        self.events_of("a", "run_started").len()
    }
}

#[test]
fn a_conversation_that_the_agent_does_not_know_fails_the_session_and_is_not_tried_again() {
    let world = World::new();
    // The error as opencode words it.
    let error = r#"{"code":-32603,"message":"Internal error: OpenCode service failure","data":{"service":"session"}}"#;
    let script = refuses(&world, error);
    world.ok(&["new", "a", "--agent", "acp", "--vendor-session", "gone", "--", "sh", &script]);
    let message = world.ok(&["send", "a", "hello"]).stdout.trim().to_owned();
    world.wait("a", "failed");
    let exits = world.events_of("a", "run_exited");
    assert_eq!((exits.len(), &exits[0]["verdict"], &exits[0]["code"]), (1, &json!("hopeless"), &json!(0)));
    let why = world.ok(&["why", "a"]).stdout;
    assert!(why.contains("the conversation of `a` is gone; run `pinfold set a --new-conversation`"), "{why}");
    assert_eq!(world.events_of("a", "conversation_lost").len(), 1);
    assert_eq!(world.message("a", &message, "queued")["tries"], 0, "nobody has read it");
    // The next daemon leaves it alone too.
    world.kill_daemon();
    world.ok(&["up"]);
    assert_eq!((world.starts_of_a(), &world.show("a")["state"]), (1, &json!("failed")));
    assert!(world.ok(&["why", "a"]).stdout.contains("the conversation of `a` is gone"));
    // A message is worth one try.
    let answer = world.run(&["send", "a", "again", "--wait", "240s"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert_eq!((world.starts_of_a(), &world.show("a")["state"]), (2, &json!("failed")));
}

#[test]
fn an_agent_that_wants_a_login_first_needs_attention() {
    let world = World::new();
    let script = refuses(&world, r#"{"code":-32000,"message":"Authentication required"}"#);
    world.ok(&["new", "a", "--agent", "acp", "--", "sh", &script]);
    world.ok(&["send", "a", "hello"]);
    world.wait("a", "failed");
    assert!(world.ok(&["why", "a"]).stdout.contains("it needs a login"));
    assert_eq!(world.starts_of_a(), 1);
}

#[test]
fn an_agent_that_refuses_the_handshake_for_another_reason_is_started_again_as_after_a_crash() {
    let world = World::new();
    let script = refuses(&world, r#"{"code":-32603,"message":"the disk is full"}"#);
    world.ok(&["new", "a", "--agent", "acp", "--", "sh", &script]);
    world.ok(&["send", "a", "hello"]);
    world.wait("a", "backoff");
    let exits = world.events_of("a", "run_exited");
    assert_eq!((&exits[0]["verdict"], &exits[0]["crashes"]), (&json!("crash"), &json!(1)));
    let why = world.ok(&["why", "a"]).stdout;
    assert!(
        why.contains("it refused the handshake of its protocol") && why.contains("the disk is full"),
        "{why}"
    );
}
