//! The field `seen`: whether a person has looked at what a session did last.

use crate::inbox::PARROT;
use crate::tty::Tty;
use crate::world::World;
use serde_json::Value;

impl World {
    /// Whether the list says that a person has looked; a list itself never changes that.
    fn is_seen(&self, name: &str) -> bool {
        self.sessions()[name]["seen"].as_bool().unwrap()
    }

    /// Lets a session end a turn that nobody takes the answer of.
    fn turn(&self, name: &str) {
        let done = |world: &World| world.sessions()[name]["inbox"]["done"].as_u64().unwrap();
        let before = done(self);
        self.ok(&["send", name, "hello"]);
        self.until("the turn has ended", || (done(self) > before).then_some(()));
    }
}

#[test]
fn what_a_person_looks_at_is_seen_and_what_was_done_since_is_not() {
    let world = World::new();
    world.new_chat("chat", &[], PARROT);
    assert!(world.is_seen("chat"), "it has done nothing yet");
    for verb in ["show", "logs", "inbox"] {
        world.turn("chat");
        assert!(!world.is_seen("chat"), "before `{verb}`");
        for list in [&["ls"] as &[&str], &["tree"], &["why", "chat"], &["events"]] {
            world.ok(list);
        }
        assert!(!world.is_seen("chat"), "a list is no look");
        world.ok(&[verb, "chat"]);
        assert!(world.is_seen("chat"), "after `{verb}`");
    }
    world.turn("chat");
    assert_eq!(world.json(&["show", "chat"])["seen"], false, "as it was before this look");
    assert_eq!(world.json(&["show", "chat"])["seen"], true);
    world.turn("chat");
    world.ok(&["send", "chat", "again", "--wait", "240s"]);
    assert!(world.is_seen("chat"), "its answer was taken");
}

#[test]
fn whoever_is_attached_sees_what_happens_and_it_is_kept_over_a_kill_of_the_daemon() {
    let world = World::new();
    world.new_chat("chat", &[], PARROT);
    world.turn("chat");
    world.kill_daemon();
    assert!(!world.is_seen("chat"), "nobody has looked");
    let mut tty = Tty::start(world.command(&["attach", "chat"]), 24, 80);
    tty.shows("following `chat`");
    assert!(world.is_seen("chat"));
    world.turn("chat");
    assert!(world.is_seen("chat"), "a person is connected");
    tty.keys(b"\x1d");
    assert!(tty.ended().success());
    world.kill_daemon();
    assert!(world.is_seen("chat"));
}

#[test]
fn a_process_of_a_run_is_not_a_person() {
    let world = World::new();
    let program = world.binary.display().to_string();
    let script = format!(
        "for verb in show logs inbox; do {program} $verb kid || exit 1; done >\"$ROOT/looked\" 2>&1; \
         echo all >>\"$ROOT/looked\"; exec sleep 100000"
    );
    world.ok(&["new", "parent", "--env", "ROOT", "--mode", "on-demand", "--", "sh", "-c", &script]);
    world.new_chat("kid", &["--parent", "parent"], PARROT);
    world.turn("kid");
    world.ok(&["start", "parent"]);
    let looked = || std::fs::read_to_string(world.path("looked")).unwrap_or_default();
    world.until("its parent has looked", || looked().ends_with("all\n").then_some(()));
    assert!(looked().contains("hello"), "{}", looked());
    assert!(!world.is_seen("kid"), "{}", looked());
}

#[test]
fn a_job_that_has_run_once_is_not_seen_until_a_person_looks() {
    let world = World::new();
    world.ok(&["new", "job", "--mode", "once", "--", "echo", "built"]);
    world.ok(&["wait", "job", "--for", "stopped", "--timeout", "30s"]);
    assert!(!world.is_seen("job"));
    let shown: Value = world.json(&["show", "job"]);
    assert_eq!(shown["state"], "stopped");
    assert!(world.is_seen("job"));
}
