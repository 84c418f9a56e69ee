//! Agents that say at the wrong time, or half, that they are done; and senders who wait for what cannot come.

use crate::world::{Answer, World};
use serde_json::{Value, json};
use std::time::Duration;

/// Far more than a verb takes that has nothing to wait for, far less than for ever.
const SOON: Duration = Duration::from_secs(20);

/// Reads a message as JSON into `$id` and `$text`, without a parser: both are plain words here.
const READ: &str = "read_message() { IFS= read -r line || exit 0; \
     id=${line#*\\\"id\\\":\\\"}; id=${id%%\\\"*}; text=${line#*\\\"text\\\":\\\"}; text=${text%%\\\"*}; }; ";

impl World {
    /// A chat that is told the ids of its messages.
    fn json_chat(&self, name: &str, script: &str) {
        self.new_chat(name, &["--input", "json"], &format!("{READ}{script}"));
    }

    /// Sends a message over HTTP and waits for what becomes of it.
    fn asks(&self, name: &str, text: &str) -> Value {
        let path = format!("/v1/sessions/{name}/messages?wait=20s");
        self.api().post(&path, &json!({ "text": text })).unwrap()
    }

    fn sends_and_waits(&self, name: &str, text: &str) -> Answer {
        self.within(SOON, &["--json", "send", name, text, "--wait"])
    }
}

#[test]
fn the_end_of_the_output_ends_the_line_that_says_done() {
    let world = World::new();
    let script =
        "IFS= read -r line; echo \"$line\" >>\"$ROOT/given\"; printf 'PINFOLD_DONE all done'; exit 0";
    world.new_chat("a", &[], script);
    let done = world.asks("a", "work");
    assert_eq!(
        (&done["state"], &done["answer"], &done["tries"]),
        (&json!("done"), &json!("all done"), &json!(1))
    );
    assert_eq!(world.journal("given"), ["work"], "worked on once");
}

#[test]
fn a_line_that_names_its_message_ends_only_that_turn() {
    let world = World::new();
    // Every answer but the first is preceded by a late one for the message before.
    let script = "while read_message; do test -z \"$last\" || echo \"PINFOLD_DONE $last late\"; \
         echo \"PINFOLD_DONE $id answer to $text\"; last=$id; done";
    world.json_chat("a", script);
    for text in ["one", "two", "three"] {
        assert_eq!(world.asks("a", text)["answer"], format!("answer to {text}"));
    }
}

#[test]
fn an_answer_that_begins_with_some_other_id_is_an_answer() {
    let world = World::new();
    let other = "01ARYZ6S410000000000000000";
    world.new_chat("a", &[], &format!("while IFS= read -r line; do echo 'PINFOLD_DONE {other} it is'; done"));
    assert_eq!(world.asks("a", "which session?")["answer"], format!("{other} it is"));
}

#[test]
fn a_late_line_while_no_daemon_lives_does_not_end_the_turn_either() {
    let world = World::new();
    let script = "read_message; first=$id; echo \"PINFOLD_DONE $id one\"; read_message; touch \"$ROOT/taken\"; \
         until test -e \"$ROOT/go\"; do sleep 0.01; done; printf 'PINFOLD_DONE %s late' \"$first\"; exit 0";
    world.json_chat("a", script);
    world.asks("a", "one");
    let second = world.ok(&["send", "a", "two"]).stdout.trim().to_owned();
    world.until("the second was taken", || world.path("taken").exists().then_some(()));
    world.message("a", &second, "delivered");
    world.kill_daemon();
    std::fs::write(world.path("go"), "").unwrap();
    let message = world.until("it is tried again", || {
        let message = world.inbox("a").into_iter().find(|message| message["id"] == *second)?;
        (message["tries"] == 2 || message["state"] == "done").then_some(message)
    });
    assert_eq!(message["answer"], Value::Null, "{message}");
}

#[test]
fn a_line_before_any_message_is_logged_and_counts_for_nothing() {
    let world = World::new();
    let script =
        "echo PINFOLD_DONE early; while IFS= read -r line; do echo \"PINFOLD_DONE answer to $line\"; done";
    world.new_chat("a", &[], script);
    world.ok(&["start", "a"]);
    world.printed("a", "PINFOLD_DONE early");
    world.until("it is logged", || {
        world.daemon_log().contains("PINFOLD_DONE without a message").then_some(())
    });
    for text in ["one", "two"] {
        assert_eq!(world.asks("a", text)["answer"], format!("answer to {text}"));
    }
}
