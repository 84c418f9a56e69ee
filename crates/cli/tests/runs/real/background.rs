//! Claude Code's own daemon, which keeps sessions in the background and restarts one that was ended: pinfold
//! names it and waits for it, and never fights it.

use super::stage::{Stage, agents};
use crate::processes::{self, lives};
use crate::world::{Answer, finish_within, number};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The conversation of a stopped session, now kept by the vendor's daemon.
struct Kept {
    stage: Stage,
    id: String,
}

impl Kept {
    fn new() -> Kept {
        let stage = Stage::new("claude");
        stage.new_session();
        stage.says("TURN-one");
        stage.ok(&["stop", "api"]);
        let id = stage.show()["vendor_session"].as_str().unwrap().to_owned();
        let kept = Kept { stage, id };
        let backgrounded = kept.by_hand(&["--resume", &kept.id, "--bg"]);
        assert_eq!(backgrounded.code, 0, "{backgrounded:?}");
        assert!(backgrounded.stdout.contains(&kept.id[..8]), "it is another session: {backgrounded:?}");
        kept.stage.world.until("a session that it keeps, idle", || kept.is_idle().then_some(()));
        kept
    }

    /// Runs the vendor's own program.
    fn by_hand(&self, words: &[&str]) -> Answer {
        let usual = self.stage.command(&[]);
        let mut claude = Command::new(agents().join("bin/claude"));
        claude.args(words).stdin(Stdio::null()).env_clear().current_dir(self.stage.world.path("work"));
        claude.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        finish_within(&mut claude, crate::processes::PATIENCE)
    }

    fn file(&self, name: &str) -> Option<Value> {
        let path = self.stage.world.path("user/.claude").join(name);
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    fn daemon(&self) -> u32 {
        number(&self.file("daemon.lock").expect("it runs")["pid"])
    }

    /// The process that it keeps, and how often that was started.
    fn worker(&self) -> Option<(u32, u64)> {
        let roster = self.file("daemon/roster.json")?;
        let worker = roster["workers"].as_object()?.values().find(|worker| worker["sessionId"] == self.id)?;
        Some((number(worker.get("replPid")?), worker["attempt"].as_u64()?))
    }

    /// Whether that process waits for a message.
    fn is_idle(&self) -> bool {
        let file = self.worker().and_then(|(pid, _)| self.file(&format!("sessions/{pid}.json")));
        file.is_some_and(|file| file["status"] == "idle")
    }

    /// Checks that the conversation is refused, and its keeper named.
    fn is_refused(&self) {
        let daemon = json!(self.daemon());
        let refused = self.stage.run(&["--json", "start", "api"]);
        assert_eq!((refused.code, &refused.error()["holder"]["pid"]), (75, &daemon), "{refused:?}");
        let shown = self.stage.show();
        assert_eq!((&shown["state"], &shown["holder"]["pid"]), (&json!("blocked"), &daemon), "{shown}");
        let why = self.stage.ok(&["why", "api"]).stdout;
        assert!(why.contains(&format!("pid {daemon}")) && why.contains("claude"), "{why}");
    }

    /// Lets the vendor's daemon release it: the session goes on by itself, with everything that was said.
    fn is_let_go(&self, message: &str) {
        assert_eq!(self.stage.comes_to(message, "queued")["state"], "queued");
        let stopped = self.by_hand(&["stop", &self.id[..8]]);
        assert_eq!(stopped.code, 0, "{stopped:?}");
        assert_eq!(self.stage.comes_to(message, "done")["answer"], "reply to two");
        assert_eq!(self.stage.model.shown_with("two"), ["one", "two"]);
        assert_eq!(self.stage.model.times_told("two"), 1);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The vendor's daemon leaves by itself some time after its last session; a failed test leaves one.
        self.by_hand(&["daemon", "stop", "--any"]);
    }
}

#[test]
fn what_it_keeps_is_not_started_and_goes_on_when_it_lets_go() {
    let kept = Kept::new();
    kept.is_refused();
    let message = kept.stage.sends("TURN-two");
    kept.is_let_go(&message);
    kept.stage.shown("kept by its own daemon: named and waited for");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn what_it_starts_again_is_its_own_also_while_nobody_is_in_it() {
    let kept = Kept::new();
    kept.is_refused();
    let message = kept.stage.sends("TURN-two");
    let (worker, started) = kept.worker().unwrap();
    processes::kill(worker);
    kept.stage.world.until("its process has ended", || (!lives(worker)).then_some(()));
    kept.is_refused();
    kept.stage.world.until("it is started again", || kept.worker().filter(|(_, times)| *times > started));
    kept.is_refused();
    kept.is_let_go(&message);
    kept.stage.shown("kept by its own daemon, which starts it again");
}
