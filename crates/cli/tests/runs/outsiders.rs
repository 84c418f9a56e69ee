//! Programs that say in files of their own which vendor session they use and what they do there: both those
//! that pinfold started and those that it did not.

use crate::world::World;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A terminal agent with such files, which the test writes.
const CONFIG: &str = r#"[agents.t]
command = ["cat"]
protocol = "line"
pty = true
session = "choose"
store = { variable = "T_HOME", default = ".t" }
id_file = "live/{pid}.json"
env = ["T_HOME"]

[agents.t.id_file_keys]
session = "id"
start_ticks = "start"
status = "does"
words = { busy = "working", idle = "idle", asks = "waiting" }
since = "since"
waits_for = "what"
"#;

impl World {
    fn with_agent_t(self) -> World {
        std::fs::create_dir_all(&self.home).unwrap();
        std::fs::write(self.home.join("config.toml"), CONFIG).unwrap();
        std::fs::create_dir_all(self.path("store/live")).unwrap();
        self
    }

    fn t(&self, words: &[&str]) -> Command {
        let mut command = self.command(words);
        command.env("T_HOME", self.path("store"));
        command
    }

    fn file_of(&self, pid: u32) -> PathBuf {
        self.path("store/live").join(format!("{pid}.json"))
    }

    /// Writes what a process says of itself.
    fn files(&self, pid: u32, id: &str, more: &Value) {
        let mut object = json!({ "id": id, "start": started(pid) });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        std::fs::write(self.file_of(pid), object.to_string()).unwrap();
    }

    fn activity(&self, name: &str, activity: &str) -> Value {
        self.until(activity, || Some(self.show(name)).filter(|shown| shown["activity"] == activity))
    }

    /// Creates a session on a terminal; returns its agent's pid.
    fn on_terminal(&self) -> (u32, String) {
        let made = crate::world::finish(&mut self.t(&["new", "a", "--agent", "t", "--mode", "always"]));
        assert_eq!(made.code, 0, "{made:?}");
        (self.pid("a"), self.show("a")["vendor_session"].as_str().unwrap().to_owned())
    }
}

/// When a process was started, in the kernel's ticks.
fn started(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned()
}

/// A program that pinfold did not start.
struct Outsider(Child);

impl Outsider {
    fn new() -> Outsider {
        Outsider(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn end(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn a_vendor_session_that_a_program_outside_has_is_not_started_until_it_is_gone() {
    let world = World::new().with_agent_t();
    let outsider = Outsider::new();
    let pid = outsider.0.id();
    world.files(pid, "v-1", &json!({}));
    let new = ["new", "a", "--agent", "t", "--vendor-session", "v-1"];
    let refused = crate::world::finish(&mut world.t(&[&["--json"], &new[..]].concat()));
    assert_eq!((refused.code, &refused.error()["holder"]["pid"]), (75, &json!(pid)), "{refused:?}");
    std::fs::remove_file(world.file_of(pid)).unwrap();
    let made = crate::world::finish(&mut world.t(&new));
    assert_eq!(made.code, 0, "{made:?}");
    world.files(pid, "v-1", &json!({}));

    let refused = world.run(&["--json", "start", "a"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    let shown = world.show("a");
    assert_eq!((&shown["state"], &shown["holder"]["pid"]), (&json!("blocked"), &json!(pid)));
    let why = shown["why"].as_str().unwrap();
    assert!(why.contains(&format!("pid {pid}, cat")) && why.contains("only you can end"), "{why}");
    // The session's own locks are free meanwhile.
    assert_eq!(world.json(&["locks"]), json!([]));
    // The daemon looks again, and the outsider is still there.
    world.ok(&["send", "a", "hello"]);
    world.wait("a", "blocked");
    outsider.end();
    world.wait("a", "running");
    assert_eq!(world.show("a")["restarts"], 0);
}

#[test]
fn a_program_that_goes_on_in_another_conversation_gives_this_one_up() {
    let world = World::new().with_agent_t();
    let outsider = Outsider::new();
    let made = crate::world::finish(&mut world.t(&["new", "a", "--agent", "t", "--vendor-session", "v-1"]));
    assert_eq!(made.code, 0, "{made:?}");
    world.files(outsider.0.id(), "v-1", &json!({}));
    assert_eq!(world.run(&["start", "a"]).code, 75);
    world.ok(&["send", "a", "hello"]);
    world.files(outsider.0.id(), "v-2", &json!({}));
    world.wait("a", "running");
    // The outsider comes back while our agent runs: a stop says so.
    world.files(outsider.0.id(), "v-1", &json!({}));
    let stopped = world.ok(&["stop", "a"]);
    let says = format!("in the hands of pid {}", outsider.0.id());
    assert!(stopped.stderr.contains(&says), "{stopped:?}");
    assert!(world.show("a")["why"].as_str().unwrap().contains(&says));
}

#[test]
fn what_a_program_on_a_terminal_says_of_itself_is_shown_with_its_age() {
    let world = World::new().with_agent_t();
    let (pid, id) = world.on_terminal();
    assert_eq!(world.show("a")["activity"], "unknown");
    world.files(pid, &id, &json!({ "does": "busy", "since": 1_700_000_000_000_u64 }));
    let shown = world.activity("a", "working");
    assert_eq!(
        (&shown["activity_from"], &shown["activity_since"]),
        (&json!("id_file"), &json!("2023-11-14T22:13:20.000Z"))
    );
    world.files(pid, &id, &json!({ "does": "idle" }));
    world.activity("a", "idle");
    // The session follows to the next conversation.
    world.files(pid, "v-2", &json!({ "does": "idle" }));
    world.until("the other conversation", || {
        Some(world.show("a")["vendor_session"] == "v-2").filter(|follows| *follows)
    });
    // A file of an earlier process with this pid says nothing.
    std::fs::write(world.file_of(pid), json!({ "does": "busy", "start": "1" }).to_string()).unwrap();
    world.activity("a", "unknown");
}

#[test]
fn a_message_is_not_typed_into_an_open_dialog_whatever_dies() {
    let world = World::new().with_agent_t();
    let (pid, id) = world.on_terminal();
    world.files(pid, &id, &json!({ "does": "asks", "what": "permission prompt" }));
    let shown = world.activity("a", "waiting");
    assert_eq!(shown["waits_for"], "permission prompt");
    let message = world.ok(&["send", "a", "y"]).stdout.trim().to_owned();
    let held = world.message("a", &message, "queued");
    assert_eq!(held["waits_for"], "a dialog: permission prompt");
    assert!(world.show("a")["why"].as_str().unwrap().contains("typed when that is answered"));
    world.kill_daemon();
    world.ok(&["up"]);
    world.activity("a", "waiting");
    assert_eq!(world.message("a", &message, "queued")["tries"], 0);
    world.files(pid, &id, &json!({ "does": "idle" }));
    let done = world.message("a", &message, "done");
    assert_eq!((&done["tries"], &done["waits_for"]), (&json!(1), &Value::Null));
    assert_eq!(world.pid("a"), pid);
}

#[test]
fn an_agent_that_rings_waits_for_a_person_until_something_is_typed() {
    let world = World::new();
    let script = r"printf '\033]9;4;1;50\007'; sleep 0.2; printf '\033]9;look here\007'; cat";
    world.ok(&["new", "a", "--pty", "--", "sh", "-c", script]);
    let shown = world.activity("a", "waiting");
    assert_eq!((&shown["activity_from"], &shown["waits_for"]), (&json!("terminal"), &json!("look here")));
    assert!(shown["why"].as_str().unwrap().contains("its terminal rang"), "{shown}");
    // The shim knows it: another daemon hears it again.
    world.kill_daemon();
    world.ok(&["up"]);
    world.activity("a", "waiting");
    // A bell does not mean a dialog: the message is typed.
    let message = world.ok(&["send", "a", "here"]).stdout.trim().to_owned();
    world.message("a", &message, "done");
    world.activity("a", "unknown");
}
