//! Claude Code started by hand beside pinfold, and what its terminal says about itself.

use super::stage::Stage;
use crate::tty::Tty;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

impl Stage {
    fn activity(&self, activity: &str) -> Value {
        self.world.until(activity, || Some(self.show()).filter(|shown| shown["activity"] == activity))
    }

    /// The vendor's own program, started by a person.
    fn by_hand(&self, words: &[&str]) -> Tty {
        let usual = self.command(&[]);
        let mut claude = Command::new("claude");
        claude.args(words).env_clear().current_dir(self.world.path("work"));
        claude.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        claude.env("CLAUDE_CODE_DISABLE_AGENT_VIEW", "1");
        Tty::start(claude, 40, 120)
    }
}

#[test]
fn a_conversation_that_is_open_by_hand_is_not_started_and_goes_on_when_that_is_closed() {
    let stage = Stage::new("claude");
    stage.new_session();
    stage.says("TURN-one");
    stage.ok(&["stop", "api"]);
    let id = stage.show()["vendor_session"].as_str().unwrap().to_owned();
    let mut tty = stage.by_hand(&[&format!("--resume={id}")]);
    tty.shows("reply to one");
    tty.keys(b"TURN-two\r");
    tty.shows("reply to two");
    let refused = stage.run(&["--json", "start", "api"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    let shown = stage.show();
    assert_eq!((&shown["state"], &shown["holder"]["pid"]), (&json!("blocked"), &json!(tty.pid())), "{shown}");
    let again = stage.run(&["--json", "new", "other", "--agent", "claude", "--vendor-session", &id]);
    assert_eq!((again.code, &again.error()["holder"]["pid"]), (75, &json!(tty.pid())), "{again:?}");
    let message = stage.sends("TURN-three");
    tty.keys(b"/exit\r");
    assert!(tty.ended().success());
    assert_eq!(stage.comes_to(&message, "done")["answer"], "reply to three");
    assert_eq!(stage.model.shown_with("three"), ["one", "two", "three"]);
    stage.shown("open by hand: waited for");
}

#[test]
fn what_its_terminal_does_is_known_in_a_takeover() {
    let stage = Stage::new("claude");
    stage.new_session();
    stage.says("TURN-one");
    let mut tty = stage.attach();
    tty.shows("reply to one");
    let shown = stage.activity("idle");
    assert_eq!((&shown["state"], &shown["activity_from"]), (&json!("held"), &json!("id_file")));
    tty.keys(b"TURN-two HOLD\r");
    stage.activity("working");
    stage.model.let_go();
    tty.shows("reply to two");
    stage.activity("idle");
    tty.keys(b"/exit\r");
    assert!(tty.ended().success());
    stage.shown("activity of its own terminal");
}

#[test]
fn a_message_waits_for_the_dialog_of_a_claude_on_a_terminal() {
    let stage = Stage::new("claude");
    stage.ok(&[
        "new",
        "api",
        "--pty",
        "--env",
        "ANTHROPIC_BASE_URL",
        "--env",
        "ANTHROPIC_API_KEY",
        "--env",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "--",
        "claude",
        "--permission-mode",
        "default",
    ]);
    stage.activity("idle");
    let tty = stage.attach();
    tty.shows("Claude Code");
    tty.keys(b"TURN-one RUN=touch made;;\r");
    let shown = stage.activity("waiting");
    assert_eq!(
        (&shown["activity_from"], &shown["waits_for"]),
        (&json!("id_file"), &json!("permission prompt"))
    );
    let message = stage.sends("TURN-two");
    assert_eq!(stage.comes_to(&message, "queued")["waits_for"], "a dialog: permission prompt");
    assert!(!stage.world.path("work/made").exists());
    tty.shows("Do you want to proceed");
    // A dialog that has just opened ignores keys for a moment, and nothing shows when that is over.
    stage.world.until("the tool ran", || {
        tty.keys(b"\r");
        std::thread::sleep(Duration::from_millis(300));
        stage.world.path("work/made").exists().then_some(())
    });
    stage.comes_to(&message, "done");
    stage.activity("idle");
    stage.shown("a dialog holds messages back");
}
