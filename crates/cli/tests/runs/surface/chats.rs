//! Messages and their answers.

use super::stage::Stage;
use crate::inbox::PARROT;
use std::fs::File;

impl Stage {
    /// Creates a session that answers each message with its text.
    fn chat(&self, name: &str) {
        let options = ["--mode", "on-demand", "--turns", "done", "--idle", "1h"];
        self.ok(&[&["new", name], &options[..], &["--", "sh", "-c", PARROT]].concat());
    }

    /// Sends a message and waits until it is done; returns its id.
    fn answered(&self, name: &str, text: &str) -> String {
        let sent = self.ok(&["--json", "send", name, text, "--wait", "60s"]);
        sent.json()["id"].as_str().unwrap().to_owned()
    }

    /// Queues a message; returns its id.
    fn queued(&self, name: &str, text: &str) -> String {
        self.ok(&["send", name, text]).stdout.trim().to_owned()
    }
}

#[test]
fn messages_are_sent_and_answered() {
    let stage = Stage::new("messages");
    stage.chat("chat");
    stage.both("inbox_empty", &["inbox", "chat"]);
    stage.case(
        "send_and_wait",
        &[
            &["send", "chat", "hello", "--wait", "60s"],
            &["--json", "send", "chat", "again", "--key", "k", "--wait", "60s"],
        ],
    );
    stage.both("same_key", &["send", "chat", "again", "--key", "k"]);
    stage.both("inbox", &["inbox", "chat"]);
    stage.both("inbox_state", &["inbox", "chat", "--state", "done", "-n", "1"]);
    let done = stage.answered("chat", "the third");
    stage.both("logs_of_a_message", &["logs", "chat", "--message", &done]);
    stage.both("retry_of_what_is_done", &["inbox", "chat", "--retry", &done]);
    stage.both("cancel_of_what_is_done", &["inbox", "chat", "--cancel", &done]);
    stage.ok(&["stop", "chat"]);
    stage.case(
        "send_to_a_stopped_session",
        &[&["send", "chat", "waits"], &["--json", "send", "chat", "waits"]],
    );
    stage.both("wait_for_a_stopped_session", &["send", "chat", "waits too", "--wait", "60s"]);
    let (one, two) = (stage.queued("chat", "first"), stage.queued("chat", "second"));
    stage.case(
        "cancel",
        &[&["inbox", "chat", "--cancel", &one], &["--json", "inbox", "chat", "--cancel", &two]],
    );
    stage
        .case("retry", &[&["inbox", "chat", "--retry", &one], &["--json", "inbox", "chat", "--retry", &two]]);
    stage.both("inbox_of_all_states", &["inbox", "chat"]);
    stage.done();
}

#[test]
fn a_turn_is_interrupted_and_waited_for() {
    let stage = Stage::new("turns");
    let slow = "trap 'echo PINFOLD_DONE interrupted' INT; echo ready; while read -r line; do sleep 100000 & wait; done";
    stage.ok(&["new", "slow", "--mode", "always", "--turns", "done", "--", "sh", "-c", slow]);
    stage.said("slow", "ready");
    stage.both("interrupt_without_a_turn", &["interrupt", "slow"]);
    stage.both("answer_without_a_request", &["answer", "slow", "allow"]);
    stage.both("answer_to_an_unknown_request", &["answer", "slow", "deny", "7"]);
    let id = stage.queued("slow", "work");
    stage.world.message("slow", &id, "delivered");
    stage.both("cancel_of_a_turn_under_way", &["inbox", "slow", "--cancel", &id]);
    stage
        .both("send_that_is_not_answered_in_time", &["send", "slow", "more", "--key", "k", "--wait", "50ms"]);
    stage.both("purge_of_a_turn", &["purge", "--mode", "always"]);
    stage.case("interrupt", &[&["interrupt", "slow"], &["--json", "interrupt", "slow"]]);
    stage.done();
}

#[test]
fn a_session_is_followed() {
    let stage = Stage::new("attach");
    stage.chat("chat");
    // The detach key: it comes at once, so only the greeting is shown.
    let keys = stage.world.path("keys");
    std::fs::write(&keys, b"\x1d").unwrap();
    let typed = |words: &[&str]| {
        let mut command = stage.command(words);
        command.stdin(File::open(&keys).unwrap());
        command
    };
    stage.commands("follow", vec![typed(&["attach", "chat"]), typed(&["--json", "attach", "chat"])]);
    stage.commands("read_only", vec![typed(&["attach", "chat", "--read-only"])]);
    stage.ok(&["stop", "chat"]);
    stage.both("stopped", &["attach", "chat"]);
    stage.ok(&["new", "screen", "--pty", "--mode", "on-demand", "--", "cat"]);
    stage.both("terminal_without_a_terminal", &["attach", "screen"]);
    stage.both("read_only_and_share", &["attach", "screen", "--read-only", "--share"]);
    stage.done();
}
