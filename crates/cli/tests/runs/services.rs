//! What starts with the machine. A boot is simulated: all processes of a home are killed, the boot id is
//! replaced, and then the unit's command is run. No machine was booted for this.

use crate::inbox::PARROT;
use crate::processes;
use crate::world::{World, number};
use std::process::{Child, Command, Stdio};

/// The words of a unit's line, as systemd reads them.
pub(crate) fn words(unit: &str, key: &str) -> Vec<String> {
    let line = unit.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    let words = line.strip_prefix("=\"").and_then(|line| line.strip_suffix('"')).unwrap();
    words.split("\" \"").map(|word| word.replace("%%", "%")).collect()
}

/// Kills the daemon, every shim and every agent without asking, as a power failure does.
fn lose_power(world: &World) {
    let shims = world.sessions().into_values().filter_map(|session| session["shim_pid"].as_u64());
    let shims: Vec<_> = shims.filter_map(|pid| processes::Held::open(u32::try_from(pid).ok()?)).collect();
    world.kill_daemon();
    // Before their agents: then no process is left to record how those ended.
    shims.iter().for_each(processes::Held::kill);
    shims.iter().for_each(processes::Held::wait);
    let all: Vec<_> = world.members().into_values().flatten().filter_map(processes::Held::open).collect();
    all.iter().for_each(processes::Held::kill);
    all.iter().for_each(processes::Held::wait);
    let database = rusqlite::Connection::open(world.home.join("pinfold.db")).unwrap();
    let another = "00000000-1111-2222-3333-444444444444";
    database.execute("UPDATE meta SET value = ?1 WHERE key = 'boot_id'", [another]).unwrap();
}

/// Runs what the unit runs at a boot, with an almost empty environment.
fn boot(world: &World) -> Child {
    let unit = world.ok(&["service", "install", "--print", "--manager", "systemd"]).stdout;
    let start = words(&unit, "ExecStart");
    let mut command = Command::new(&start[0]);
    command.args(&start[1..]).env_clear().current_dir("/").stdin(Stdio::null());
    command
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("HOME", &world.root)
        .env("XDG_STATE_HOME", world.path("state"));
    command.env("ROOT", &world.root).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn after_a_boot_everything_is_as_the_contract_says() {
    let world = World::new();
    let chat = ["--mode", "on-demand", "--turns", "done", "--idle", "1h"];
    world.guarded("always", &[], "exec sleep 100000");
    world.guarded("stopped", &[], "exec sleep 100000");
    world.ok(&["stop", "stopped"]);
    world.guarded("once", &["--mode", "once"], "exec sleep 100000");
    world.ok(&["new", "failed", "--mode", "once", "--", "false"]);
    world.wait("failed", "failed");
    for name in ["idle", "queued", "archived"] {
        world.ok(&[&["new", name], &chat[..], &["--", "sh", "-c", PARROT]].concat());
    }
    world.ok(&["archive", "archived"]);
    // It waits after a turn that never ends: its agent is gone with the power.
    world.ok(&[
        "new",
        "busy",
        "--mode",
        "on-demand",
        "--turns",
        "done",
        "--",
        "sh",
        "-c",
        "while read -r line; do sleep 100000; done",
    ]);
    world.ok(&["send", "busy", "never answered"]);
    let queued = world.ok(&["send", "busy", "waits behind it"]).stdout.trim().to_owned();
    world.wait("busy", "running");
    let before = number(&world.show("always")["pid"]);
    lose_power(&world);
    let mut daemon = boot(&world);
    world.wait("always", "running");
    assert_ne!(number(&world.show("always")["pid"]), before);
    for (name, state) in [
        ("idle", "idle"),
        ("stopped", "stopped"),
        ("failed", "failed"),
        ("once", "failed"),
        ("archived", "archived"),
    ] {
        assert_eq!(world.show(name)["state"], state, "{name}");
    }
    // A queued message wakes its session; the turn lost with the power does not count as a try.
    world.wait("busy", "running");
    assert_eq!(world.json(&["inbox", "busy"])[1]["id"], queued.as_str());
    let why = world.show("once")["why"].as_str().unwrap().to_owned();
    assert!(!why.is_empty());
    assert_eq!(world.doubles(), "");
    world.within(crate::processes::PATIENCE, &["down"]);
    daemon.wait().unwrap();
}

#[test]
fn what_the_unit_does_at_its_stop_leaves_agents_alone() {
    let world = World::new();
    world.guarded("always", &[], "exec sleep 100000");
    let kept = number(&world.show("always")["pid"]);
    let unit = world.ok(&["service", "install", "--print", "--manager", "systemd"]).stdout;
    let stop = words(&unit, "ExecStop");
    let stopped =
        Command::new(&stop[0]).args(&stop[1..]).env("PINFOLD_LOCKS", world.path("locks")).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(processes::lives(kept));
    let mut again = boot(&world);
    world.wait("always", "running");
    assert_eq!(number(&world.show("always")["pid"]), kept);
    world.within(crate::processes::PATIENCE, &["down"]);
    again.wait().unwrap();
}

/// A session of every kind that a boot may find, its state afterwards, and the reason given.
const BOOTED: [(&str, &str, &str); 7] = [
    ("always", "running", "running for "),
    ("screen", "running", "running for "),
    ("crasher", "running,starting,backoff", ""),
    ("queued", "stopped", "a message is queued"),
    ("stopped", "stopped", "stopped by a person"),
    ("once", "failed", "was ended by a restart of the machine"),
    ("done", "stopped", "its one run exited with 0"),
];

#[test]
fn after_a_boot_it_is_said_why_each_runs_or_does_not() {
    let world = World::new();
    std::fs::create_dir(world.path("shared")).unwrap();
    world.guarded("always", &[], "exec sleep 100000");
    world.guarded("screen", &["--pty"], "exec sleep 100000");
    world.guarded("crasher", &[], "exit 3");
    world.wait("crasher", "backoff");
    for name in ["stopped", "queued"] {
        world.ok(&["new", name, "--mode", "on-demand", "--", "cat"]);
        world.ok(&["stop", name]);
    }
    world.ok(&["send", "queued", "kept over the boot"]);
    world.guarded("once", &["--mode", "once"], "exec sleep 100000");
    world.ok(&["new", "done", "--mode", "once", "--", "true"]);
    world.wait("done", "stopped");
    for name in ["one", "other"] {
        world.guarded(name, &["--dir", "shared"], "exec sleep 100000");
    }
    assert_eq!(world.show("other")["state"], "blocked");
    lose_power(&world);
    let mut daemon = boot(&world);
    for (name, states, why) in BOOTED {
        world.wait(name, states);
        let told = world.show(name)["why"].as_str().unwrap().to_owned();
        assert!(told.contains(why), "{name}: {told}");
    }
    assert_eq!(world.json(&["inbox", "queued"])[0]["text"], "kept over the boot");
    // Two want the same directory: one has it, whichever came first, and the other names it.
    let shared = ["one", "other"].map(|name| world.show(name));
    let blocked: Vec<_> = shared.iter().filter(|session| session["state"] == "blocked").collect();
    assert_eq!(blocked.len(), 1, "{shared:?}");
    assert!(blocked[0]["why"].as_str().unwrap().contains("is held by session `o"), "{blocked:?}");
    // Neither a crash before the boot nor the boot itself is charged to a session.
    assert_eq!(world.show("always")["crashes"], 0);
    assert_eq!(world.doubles(), "");
    world.within(crate::processes::PATIENCE, &["down"]);
    daemon.wait().unwrap();
}
