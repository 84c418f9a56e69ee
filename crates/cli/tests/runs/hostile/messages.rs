//! Agents that say at the wrong time, or only half, that they are done; and senders that wait for what cannot come.

use crate::world::{Answer, World};
use serde_json::{Value, json};
use std::time::Duration;

/// Far longer than a verb takes that has nothing to wait for, far shorter than forever.
const SOON: Duration = crate::processes::PATIENCE;

/// Reads a message as JSON into `$id` and `$text`, without a parser: both are plain words here.
const READ: &str = "read_message() { IFS= read -r line || exit 0; \
     id=${line#*\\\"id\\\":\\\"}; id=${id%%\\\"*}; text=${line#*\\\"text\\\":\\\"}; text=${text%%\\\"*}; }; ";

impl World {
    /// Creates a chat that is told the ids of its messages.
    fn json_chat(&self, name: &str, script: &str) {
        self.new_chat(name, &["--input", "json"], &format!("{READ}{script}"));
    }

    /// Sends a message over HTTP and waits for its outcome.
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
    // Every answer but the first comes after a late one for the previous message.
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
         until test -e \"$ROOT/go\"; do sleep 0.01; done; echo \"PINFOLD_DONE $first late\"; exit 0";
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
    assert_eq!(message["tries"], 2, "the late line was taken for its answer: {message}");
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

/// The kind of error that a verb with `--json` reported.
fn kind(answer: &Answer) -> String {
    answer.json()["error"]["kind"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn whoever_waits_for_a_session_that_cannot_start_hears_why_after_its_one_try() {
    let world = World::new();
    world.run(&[
        "new",
        "missing",
        "--mode",
        "on-demand",
        "--turns",
        "done",
        "--force",
        "--",
        "/no/such/program",
    ]);
    let answer = world.sends_and_waits("missing", "hey");
    assert_eq!((answer.code, kind(&answer).as_str()), (1, "failed"), "{answer:?}");
    assert!(answer.stderr.contains("`missing` is failed"), "{answer:?}");
    assert!(answer.stderr.contains("`/no/such/program` was not found"), "{answer:?}");
    assert_eq!(answer.json()["state"], "queued", "the message is kept: {answer:?}");
}

#[test]
fn whoever_waits_for_an_agent_that_fails_for_good_hears_its_last_words() {
    let world = World::new();
    world.new_chat("a", &[], "IFS= read -r line; echo 'no licence' >&2; exit 78");
    let answer = world.sends_and_waits("a", "hey");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("exited with 78"), "{answer:?}");
    assert!(answer.stderr.contains("`no licence`"), "{answer:?}");
}

#[test]
fn whoever_waits_for_a_stopped_session_is_told_that_it_is_not_woken() {
    let world = World::new();
    world.new_chat("a", &[], "exec sleep 100000");
    world.ok(&["stop", "a"]);
    let answer = world.sends_and_waits("a", "hey");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.stderr.contains("queued, not woken"), "{answer:?}");
    assert!(answer.stderr.contains("`pinfold start a`"), "{answer:?}");
}

#[test]
fn whoever_waits_hears_of_a_stop_and_of_the_archive() {
    for (verb, words) in [("stop", "queued, not woken"), ("archive", "was archived")] {
        let world = World::new();
        world.new_chat("a", &[], "exec sleep 100000");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| world.sends_and_waits("a", "hey"));
            world.until("it is sent", || world.inbox("a").first().map(drop));
            world.ok(&[verb, "a"]);
            let answer = waiter.join().unwrap();
            assert_eq!(answer.code, 1, "{verb}: {answer:?}");
            assert!(answer.stderr.contains(words), "{verb}: {answer:?}");
        });
    }
}

#[test]
fn whoever_waits_for_what_was_removed_is_told_so_and_no_hint_has_an_empty_name() {
    let world = World::new();
    world.new_chat("a", &[], "exec sleep 100000");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| world.sends_and_waits("a", "hey"));
        world.until("it is sent", || world.inbox("a").first().map(drop));
        world.ok(&["archive", "a"]);
        world.ok(&["rm", "a", "--yes"]);
        let answer = waiter.join().unwrap();
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(!answer.stderr.contains("unknown") && !answer.stderr.contains("inbox  "), "{answer:?}");
        assert!(["archived", "not_found"].contains(&kind(&answer).as_str()), "{answer:?}");
    });
}

#[test]
fn whoever_waits_where_no_answers_are_given_is_told_so_at_the_delivery() {
    let world = World::new();
    let options = ["--mode", "on-demand", "--turns", "line", "--idle", "1h"];
    world.guarded("a", &options, "while read -r line; do echo \"$line\"; done");
    let answer = world.within(SOON, &["send", "a", "hey", "--wait"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{answer:?}");
    assert!(answer.stderr.contains("no answers"), "{answer:?}");
}

#[test]
fn a_message_to_an_archived_session_is_refused_as_such() {
    let world = World::new();
    world.new_chat("a", &[], "exec sleep 100000");
    world.ok(&["archive", "a"]);
    let answer = world.run(&["--json", "send", "a", "hey"]);
    assert_eq!((answer.code, kind(&answer).as_str()), (1, "archived"), "{answer:?}");
}
