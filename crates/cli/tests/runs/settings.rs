//! `set` does what it prints: for each option, what is printed and shown, and what the next run is like and
//! which locks it has, however the run before it ends.

use crate::processes::{self, PATIENCE, lives};
use crate::world::{World, number};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

/// Writes down how it was started, under the id of its run, and then lives on.
const AGENT: &str = "#!/bin/sh
tty=no; test -t 0 && tty=yes
{ echo \"argv $*\"; echo \"cwd $(pwd -P)\"; echo \"probe $PROBE\"; echo \"tty $tty\"; } >\"$ROOT/$PINFOLD_RUN.new\"
mv \"$ROOT/$PINFOLD_RUN.new\" \"$ROOT/$PINFOLD_RUN\"
exec sleep 100000
";

fn until<T>(what: &str, so: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = so() {
            return found;
        }
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A world with the agent, quick restarts, and two presets that run it.
fn world() -> (World, String) {
    let world = World::new();
    let agent = world.path("agent.sh");
    std::fs::write(&agent, AGENT).unwrap();
    std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).unwrap();
    let agent = agent.to_str().unwrap().to_owned();
    std::fs::create_dir_all(&world.home).unwrap();
    let preset = |name: &str, session: &str, env: &str| {
        format!(
            "[agents.{name}]\ncommand = [\"{agent}\", \"{name}\", \"{{vendor_session}}\"]\nsession = \"{session}\"\nenv = [{env}]\n"
        )
    };
    let (one, two) = (preset("one", "choose", ""), preset("two", "choose", "\"PROBE\""));
    let config = format!("[policy]\nbackoff_initial = \"10ms\"\n{one}{two}");
    std::fs::write(world.home.join("config.toml"), config).unwrap();
    (world, agent)
}

fn folder(world: &World, name: &str) -> String {
    let path = world.path(name);
    std::fs::create_dir_all(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The locks that a session holds, without its own.
fn locks(world: &World, name: &str) -> BTreeSet<String> {
    let all = world.json(&["locks"]);
    let own = all.as_array().unwrap().iter().filter(|lock| lock["session"] == name);
    let resources = own.map(|lock| lock["resource"].as_str().unwrap().to_owned());
    resources.filter(|resource| !resource.starts_with("session:")).collect()
}

/// The live run of a session, once it has written down how it was started.
fn started(world: &World, name: &str) -> (String, String) {
    until(&format!("a run of {name}"), || {
        let run = world.show(name)["run"].as_str()?.to_owned();
        let report = std::fs::read_to_string(world.path(&run)).ok()?;
        Some((run, report))
    })
}

/// As `started`, for a run after this one.
fn started_after(world: &World, name: &str, run: &str) -> String {
    until(&format!("the next run of {name}"), || {
        let next = world.show(name)["run"].as_str()?.to_owned();
        if next == run {
            return None;
        }
        std::fs::read_to_string(world.path(&next)).ok()
    })
}

fn line<'a>(report: &'a str, key: &str) -> &'a str {
    let line = report.lines().find(|line| line.split(' ').next() == Some(key));
    line.unwrap_or_default().strip_prefix(key).unwrap_or_default().trim()
}

/// The options that `set` gives to a live session, and what `pending` has of them.
fn everything(world: &World, agent: &str, dir: &str) -> (Vec<String>, Value) {
    std::fs::write(world.path("probe.env"), "PROBE=after\n").unwrap();
    std::fs::set_permissions(world.path("probe.env"), PermissionsExt::from_mode(0o600)).unwrap();
    let file = world.path("probe.env").to_str().unwrap().to_owned();
    let words = [
        "--dir",
        dir,
        "--vendor-session",
        &format!("V-{}", dir.rsplit('/').next().unwrap()),
        "--env-file",
        &file,
        "--memory",
        "2G",
        "--idle",
        "1h",
        "--stop-grace",
        "3s",
        "--budget",
        "5USD",
        "--turn-time",
        "2h",
        "--pty",
        "--input",
        "json",
        "--tag",
        "later",
        "--",
        agent,
        "after",
    ];
    let pending = json!({
        "dir": dir, "vendor_session": format!("V-{}", dir.rsplit('/').next().unwrap()), "env": ["PROBE"],
        "memory": "2G", "idle": "1h", "stop_grace": "3s", "pty": true,
        "input": "json", "command": [agent, "after"],
    });
    (words.map(str::to_owned).to_vec(), pending)
}

/// How a run ends, of which the next one follows by itself.
const WAYS: [&str; 4] = ["restart", "crash", "shim", "away"];

/// A session that was changed while it ran.
struct Changed {
    name: &'static str,
    run: String,
    session: Value,
    from: String,
    to: String,
    pending: Value,
}

impl Changed {
    fn of(world: &World, agent: &str, name: &'static str) -> Changed {
        let [from, to] = ["a", "b"].map(|end| folder(world, &format!("{name}-{end}")));
        let command = ["--env", "ROOT", "--env", "PROBE=before", "--", agent, "before"];
        world.json(&[&["new", name, "--dir", &from], &command[..]].concat());
        let (run, report) = started(world, name);
        assert_eq!((line(&report, "argv"), line(&report, "cwd")), ("before", &*from));
        assert_eq!(line(&report, "probe"), "before");
        let (words, pending) = everything(world, agent, &to);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = world.ok(&[&["set", name], &words[..]].concat()).stderr;
        assert!(said.contains("budget 5USD, tags later, turn-time 2h from now on; "), "{said}");
        assert!(said.contains(&format!("dir {to}")), "{said}");
        let way = format!("from its next run on; `pinfold restart {name}` starts that now");
        assert!(said.contains(&way), "{said}");
        Changed { name, run, session: world.show(name), from, to, pending }
    }

    fn pid(&self, field: &str) -> u32 {
        number(&self.session[field])
    }

    /// Nothing but the tags has changed of the live run.
    fn waits(&self, world: &World, when: &str) {
        let now = world.show(self.name);
        assert_eq!(now["pending"], self.pending, "{} {when}", self.name);
        assert_eq!((&now["run"], &now["dir"]), (&json!(self.run), &json!(self.from)), "{when}");
        assert_eq!((&now["command"][1], &now["tags"]), (&json!("before"), &json!(["later"])), "{when}");
        assert_eq!(now["memory_limit_bytes"], json!(null), "{when}");
        assert_eq!(locks(world, self.name), BTreeSet::from([self.from.clone()]), "{} {when}", self.name);
    }

    /// Everything is true of the next run.
    fn is_so(&self, world: &World) {
        let Changed { name, run, from, to, .. } = self;
        let report = started_after(world, name, run);
        assert_eq!((line(&report, "argv"), line(&report, "cwd")), ("after", &**to), "{name}: {report}");
        assert_eq!((line(&report, "probe"), line(&report, "tty")), ("after", "yes"), "{name}: {report}");
        let now = world.show(name);
        assert_eq!((&now["pending"], &now["dir"]), (&json!(null), &json!(to)), "{name}");
        let limits = (&now["memory_limit_bytes"], &now["policy"]["idle_after"], &now["policy"]["stop_grace"]);
        assert_eq!(limits, (&json!(2_u64 << 30), &json!(3_600_000), &json!(3_000)), "{name}");
        let held = locks(world, name);
        assert!(held.len() == 2 && held.contains(to) && !held.contains(from), "{name}: {held:?}");
        let is_vendor =
            |held: &&String| held.starts_with("vendor:command:") && held.ends_with(&format!(":V-{name}-b"));
        assert!(held.iter().any(|held| is_vendor(&held)), "{held:?}");
        world.ok(&["lock", from, "--", "true"]);
        assert_eq!(world.run(&["lock", to, "--", "true"]).code, 75, "{name}");
    }
}

#[test]
fn what_was_set_waits_for_the_next_run_and_is_all_true_of_it() {
    let (world, agent) = world();
    let [restart, crash, shim, away] = WAYS.map(|name| Changed::of(&world, &agent, name));
    let all = [&restart, &crash, &shim, &away];
    all.iter().for_each(|changed| changed.waits(&world, "after `set`"));
    world.kill_daemon();
    world.ok(&["up"]);
    all.iter().for_each(|changed| changed.waits(&world, "under the next daemon"));

    world.ok(&["restart", restart.name]);
    processes::kill(crash.pid("pid"));
    processes::kill(shim.pid("shim_pid"));
    until("the end of the run whose shim was lost", || {
        (!world.events_of(shim.name, "run_exited").is_empty()).then_some(())
    });
    world.kill_daemon();
    processes::kill(away.pid("pid"));
    until("the end of the agent", || (!lives(away.pid("pid"))).then_some(()));
    world.ok(&["up"]);
    all.iter().for_each(|changed| changed.is_so(&world));
}

#[test]
fn a_run_in_no_directory_lock_gets_one_and_gives_it_up() {
    let (world, agent) = world();
    let dir = folder(&world, "a");
    world.json(&["new", "s", "--env", "ROOT", "--", &agent, "x"]);
    let (first, report) = started(&world, "s");
    assert_eq!((line(&report, "cwd"), locks(&world, "s").len()), (world.root.to_str().unwrap(), 0));
    world.ok(&["set", "s", "--dir", &dir]);
    assert_eq!(world.show("s")["pending"], json!({ "dir": dir, "dir_lock": true }));
    processes::kill(world.pid("s"));
    let report = started_after(&world, "s", &first);
    assert_eq!((line(&report, "cwd"), locks(&world, "s")), (&*dir, BTreeSet::from([dir.clone()])));
    let (second, _) = started(&world, "s");
    world.ok(&["set", "s", "--no-dir-lock"]);
    assert_eq!(world.show("s")["pending"], json!({ "dir_lock": false }));
    world.ok(&["restart", "s"]);
    let report = started_after(&world, "s", &second);
    assert_eq!((line(&report, "cwd"), locks(&world, "s").len()), (&*dir, 0));
}

/// The id of the vendor session that a run of a preset was given.
fn conversation(report: &str) -> String {
    line(report, "argv").split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn another_agent_and_another_conversation_are_those_of_the_next_run() {
    let (world, _) = world();
    let dir = folder(&world, "a");
    world.json(&["new", "s", "--agent", "one", "--mode", "always", "--dir", &dir, "--env", "ROOT"]);
    let (first, report) = started(&world, "s");
    let old = conversation(&report);
    let held = |agent: &str, id: &str| {
        let held = locks(&world, "s");
        assert!(held.len() == 2 && held.contains(&dir), "{held:?}");
        let vendor = held
            .iter()
            .any(|held| held.starts_with(&format!("vendor:{agent}:")) && held.ends_with(&format!(":{id}")));
        assert!(vendor, "{held:?}");
    };
    held("one", &old);
    let refused = world.run(&["--json", "set", "s", "--agent", "two"]);
    assert_eq!((refused.code, &refused.error()["kind"]), (75, &json!("busy")), "{refused:?}");
    let hint = refused.error()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("--new-conversation") && hint.contains("--vendor-session"), "{hint}");
    assert_eq!(world.show("s")["pending"], json!(null), "nothing was changed");

    let mut set = world.command(&["set", "s", "--agent", "two", "--new-conversation"]);
    let said = crate::world::finish(set.env("PROBE", "of the caller"));
    assert_eq!(said.code, 0, "{said:?}");
    let now = world.show("s");
    assert_eq!(
        (&now["agent"], &now["pending"]),
        (&json!("one"), &json!({ "agent": "two", "env": ["PROBE"] }))
    );
    held("one", &old);
    processes::kill(world.pid("s"));
    let report = started_after(&world, "s", &first);
    let second = conversation(&report);
    assert!(line(&report, "argv").starts_with("two ") && second != old, "{report}");
    assert_eq!((line(&report, "probe"), line(&report, "cwd")), ("of the caller", &*dir), "{report}");
    held("two", &second);
    assert_eq!(world.show("s")["agent"], json!("two"));

    let (run, _) = started(&world, "s");
    world.ok(&["set", "s", "--new-conversation"]);
    assert_eq!(world.show("s")["pending"], json!({ "new_conversation": true }));
    world.ok(&["restart", "s"]);
    let third = conversation(&started_after(&world, "s", &run));
    assert!(third != second && third != old);
    held("two", &third);

    let (run, _) = started(&world, "s");
    world.ok(&["set", "s", "--vendor-session", "named"]);
    world.ok(&["restart", "s"]);
    assert_eq!(conversation(&started_after(&world, "s", &run)), "named");
    held("two", "named");
}

#[test]
fn what_set_cannot_do_is_refused_and_changes_nothing() {
    let (world, agent) = world();
    world.json(&["new", "s", "--mode", "on-demand", "--", &agent]);
    world.json(&["new", "chat", "--agent", "one", "--dir", &folder(&world, "a")]);
    let nowhere = world.path("nowhere");
    let rows: [(&[&str], i32, &str); 9] = [
        (&["s", "--agent", "nobody"], 78, "no agent `nobody` is known"),
        (&["chat", "--agent", "command"], 2, "needs a command"),
        (&["chat", "--", "cat"], 2, "brings its own command"),
        (&["s", "--dir", nowhere.to_str().unwrap()], 78, "nowhere"),
        (&["s", "--", "no-such-program"], 78, "no-such-program"),
        (&["s", "--beside"], 2, "`--beside` is not available"),
        (&["s", "--new-conversation", "--vendor-session", "x"], 2, "cannot be used with"),
        (&["s", "--parent", "s"], 78, "is the session itself"),
        (&["s"], 2, "no change is given"),
    ];
    let before = (world.show("s"), world.show("chat"));
    for (words, code, text) in rows {
        let answer = world.run(&[&["set"], words].concat());
        assert_eq!(answer.code, code, "{words:?}: {answer:?}");
        assert!(answer.stderr.contains(text), "{words:?}: {answer:?}");
    }
    for key in ["agent", "dir", "command", "parent", "pending", "vendor_session"] {
        assert_eq!(
            (&world.show("s")[key], &world.show("chat")[key]),
            (&before.0[key], &before.1[key]),
            "{key}"
        );
    }
}

#[test]
fn beside_is_refused_wherever_it_can_be_asked_for() {
    let world = World::new();
    let refused = |words: &[&str]| {
        let answer = world.run(words);
        assert_eq!(answer.code, 2, "{words:?}: {answer:?}");
        assert!(answer.stderr.contains("`--beside` is not available in this version"), "{answer:?}");
        assert!(
            answer.stderr.contains("--worktree") && answer.stderr.contains("--no-dir-lock"),
            "{answer:?}"
        );
    };
    refused(&["new", "s", "--beside", "--", "true"]);
    refused(&["run", "s", "--beside", "--", "true"]);
    let file: PathBuf = world.path("sessions.toml");
    std::fs::write(&file, "[sessions.s]\nbeside = true\ncommand = [\"true\"]\n").unwrap();
    refused(&["apply", file.to_str().unwrap()]);
    assert!(world.sessions().is_empty());
}
