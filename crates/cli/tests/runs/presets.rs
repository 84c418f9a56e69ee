//! Agents by name: what a preset gives to a run, and how it is begun and resumed.

use crate::world::World;
use std::process::Command;

/// An agent that keeps a file for each of its sessions, and prints the command it was started with.
const CONFIG: &str = r#"[agents.v]
command = ["sh", "-c", "env >$ROOT/env; echo begun {vendor_session}; sleep 1000"]
resume = ["sh", "-c", "echo resumed {vendor_session}; sleep 1000"]
protocol = "line"
session = "choose"
store = { variable = "V_HOME", default = ".v" }
transcript = "all/*/{vendor_session}.jsonl"
env = ["V_*", "ROOT"]
set = { V_SET = "by the preset", V_OTHER = "by the preset" }
strip = ["V_SECRET"]
"#;

impl World {
    fn with_agent_v(self) -> World {
        std::fs::create_dir_all(&self.home).unwrap();
        std::fs::write(self.home.join("config.toml"), CONFIG).unwrap();
        self
    }

    fn new_v(&self, name: &str, store: &str, more: &[&str]) -> Command {
        std::fs::create_dir_all(self.path(name)).unwrap();
        let words = [&["new", name, "--agent", "v", "--mode", "always", "--dir", name], more].concat();
        let mut command = self.command(&words);
        command.env("V_HOME", self.path(store)).env("V_SECRET", "s").env("V_OTHER", "of the caller");
        command.env("NOT_NAMED", "1");
        command
    }

    fn vendor(&self, name: &str) -> String {
        self.show(name)["vendor_session"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_session_is_begun_with_an_id_that_is_chosen_and_resumed_once_its_vendor_has_it() {
    let world = World::new().with_agent_v();
    assert!(world.new_v("a", "store", &[]).status().unwrap().success());
    let id = world.vendor("a");
    assert_eq!(world.printed("a", "begun "), id);
    world.ok(&["restart", "a"]);
    assert_eq!(world.printed("a", "begun "), id, "its vendor has nothing of it yet");
    std::fs::create_dir_all(world.path("store/all/work")).unwrap();
    std::fs::write(world.path("store/all/work").join(format!("{id}.jsonl")), "").unwrap();
    world.ok(&["restart", "a"]);
    assert_eq!(world.printed("a", "resumed "), id);
    let known = ["--vendor-session", &id];
    world.ok(&["stop", "a"]);
    assert!(world.new_v("b", "store", &known).status().unwrap().success());
    assert_eq!(world.printed("b", "resumed "), id);
}

#[test]
fn rm_deletes_the_agents_own_transcript_only_if_asked_and_only_if_it_is_the_only_one_that_matches() {
    let world = World::new().with_agent_v();
    let folder = world.path("store/all");
    for work in ["one", "two"] {
        std::fs::create_dir_all(folder.join(work)).unwrap();
    }
    let transcript = |name: &str| {
        assert!(world.new_v(name, "store", &[]).status().unwrap().success());
        let file = format!("{}.jsonl", world.vendor(name));
        world.ok(&["stop", name]);
        std::fs::write(folder.join("one").join(&file), "said").unwrap();
        file
    };
    let (kept, gone, doubled) = (transcript("a"), transcript("b"), transcript("c"));
    std::fs::write(folder.join("two").join(&doubled), "said elsewhere").unwrap();
    world.ok(&["rm", "a", "--yes"]);
    world.ok(&["rm", "b", "--yes", "--with-conversation"]);
    let told = world.run(&["rm", "c", "--yes", "--with-conversation"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("`c` is deleted, and its conversation is not: 2 files match"), "{told:?}");
    world.ok(&["new", "d", "--mode", "on-demand", "--", "cat"]);
    let told = world.run(&["rm", "d", "--yes", "--with-conversation"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("run `pinfold rm d --yes` to delete the session only"), "{told:?}");
    let exists = |work: &str, file: &str| folder.join(work).join(file).exists();
    assert!(exists("one", &kept) && !exists("one", &gone));
    assert!(exists("one", &doubled) && exists("two", &doubled));
}

#[test]
fn a_run_has_the_variables_that_its_preset_names_and_none_that_it_strips() {
    let world = World::new().with_agent_v();
    assert!(world.new_v("a", "store", &["--env", "V_SECRET=given"]).status().unwrap().success());
    world.printed("a", "begun ");
    let env = std::fs::read_to_string(world.path("env")).unwrap();
    let has = |line: &str| env.lines().any(|has| has == line);
    assert!(has("V_SET=by the preset") && has("V_OTHER=of the caller"), "{env}");
    assert!(!env.contains("V_SECRET") && !env.contains("NOT_NAMED"), "{env}");
}

#[test]
fn one_store_by_two_names_is_one_vendor_session() {
    let world = World::new().with_agent_v();
    std::fs::create_dir_all(world.path("store")).unwrap();
    std::os::unix::fs::symlink(world.path("store"), world.path("alias")).unwrap();
    let with = ["--vendor-session", "one"];
    assert!(world.new_v("a", "store", &with).status().unwrap().success());
    // A conversation that a person named is never begun.
    world.printed("a", "resumed ");
    let second = world.new_v("b", "alias", &with).output().unwrap();
    assert_eq!(second.status.code(), Some(75), "{second:?}");
    assert!(String::from_utf8_lossy(&second.stderr).contains("of session `a`"), "{second:?}");
    assert!(
        world.new_v("c", "elsewhere", &with).status().unwrap().success(),
        "another store, another session"
    );
}

#[test]
fn a_shipped_agent_that_is_not_installed_is_told_with_how_to_install_it() {
    let world = World::new();
    let mut new = world.command(&["new", "a", "--agent", "claude"]);
    let answer = new.env("PATH", "/nowhere").output().unwrap();
    let said = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(78), "{said}");
    assert!(said.contains("`claude`") && said.contains("npm install"), "{said}");
}
