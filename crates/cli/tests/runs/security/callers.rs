//! No caller gets more through the API than it is entitled to.

use super::sandbox::{Tried, wait_for};
use crate::rights::needs;
use crate::world::{World, finish};
use serde_json::json;
use std::process::Command;

/// What a confined agent tries: everything that would start, change or end a process, and reading others.
const FORBIDDEN: [(&str, &str); 12] = [
    ("new", "new escaped -- touch escaped"),
    ("set", "set boss --memory 1G"),
    ("set-own", "set evil --memory 1G"),
    ("stop", "stop boss"),
    ("start", "start idle"),
    ("restart", "restart boss"),
    ("archive", "archive idle"),
    ("send", "send boss hello"),
    ("show", "show boss"),
    ("logs", "logs boss"),
    ("attach", "attach boss"),
    ("purge", "purge"),
];
const ALLOWED: [(&str, &str); 4] = [
    ("show-own", "show evil"),
    ("send-own", "send evil hello"),
    ("ls", "--json ls"),
    ("events", "--json events"),
];

fn world_with_others() -> World {
    let world = World::new();
    world.ok(&["new", "boss", "--", "sleep", "100000"]);
    world.ok(&["new", "idle", "--mode", "on-demand", "--", "cat"]);
    world
}

#[track_caller]
fn is_kept_in(sandbox: &str, mark: &str) {
    let world = world_with_others();
    let before = world.show("boss");
    let tried = world.try_in("evil", &[], sandbox, &[&FORBIDDEN[..], &ALLOWED].concat());
    let files = world.try_in("probe", &[], sandbox, &[("file", "send probe look --file /")]);
    files["file"].is_refused("a message from a sandbox names no files");
    for (name, _) in FORBIDDEN {
        tried[name].is_refused(&format!("you are confined ({mark}"));
        assert!(tried[name].said.contains("hint: call it outside of the sandbox"), "{:?}", tried[name]);
    }
    for (name, _) in ALLOWED {
        assert_eq!(tried[name].code, 0, "{name}: {:?}", tried[name]);
    }
    let listed = |tried: &Tried| tried.said.contains("\"evil\"") && !tried.said.contains("\"boss\"");
    assert!(listed(&tried["ls"]) && listed(&tried["events"]), "{tried:?}");
    let after = world.show("boss");
    assert_eq!((&after["pid"], &after["memory_limit_bytes"]), (&before["pid"], &json!(null)));
    assert_eq!(world.sessions().len(), 4, "nothing was made");
    assert!(!world.path("escaped").exists());
}

#[test]
fn an_agent_in_namespaces_of_its_own_starts_changes_and_ends_nothing() {
    needs!(UserNamespaces);
    is_kept_in("namespaces", "mnt, user");
}

#[test]
fn an_agent_in_a_pid_namespace_starts_changes_and_ends_nothing() {
    needs!(UserNamespaces);
    is_kept_in("processes", "user, pid");
}

#[test]
fn an_agent_without_a_network_starts_changes_and_ends_nothing() {
    needs!(UserNamespaces);
    is_kept_in("network", "user, net");
}

#[test]
fn an_agent_under_no_new_privs_starts_changes_and_ends_nothing() {
    is_kept_in("no_new_privs", "NoNewPrivs");
}

#[test]
fn an_agent_under_seccomp_starts_changes_and_ends_nothing() {
    is_kept_in("seccomp", "NoNewPrivs, Seccomp");
}

#[test]
fn an_agent_under_landlock_starts_changes_and_ends_nothing() {
    is_kept_in("landlock", "NoNewPrivs");
}

#[test]
fn one_that_is_confined_outside_of_any_run_may_nothing() {
    let world = world_with_others();
    let mut command = Command::new("setpriv");
    command.arg("--no-new-privs").arg(&world.binary).args(["--no-start", "--json", "ls"]);
    let answer = finish(command.env("PINFOLD_HOME", &world.home).env("PINFOLD_LOCKS", world.path("locks")));
    assert_eq!((answer.code, &answer.error()["kind"]), (77, &json!("not_permitted")), "{answer:?}");
}

#[test]
fn a_run_acts_on_itself_and_its_children_and_on_nobody_else() {
    let world = world_with_others();
    let verbs = [
        ("child", "new child -- sleep 100000"),
        ("stop-child", "stop child"),
        ("start-child", "start child"),
        ("set-child", "set child --memory 1G --mode on-demand --env A=1"),
        ("send-child", "send child hello"),
        ("set-own", "set evil --memory 1G"),
        ("archive-child", "archive child"),
        ("restore-child", "restore child"),
        ("purge", "purge --mode all"),
        ("lock", "lock key:k -- true"),
        ("wait", "wait evil --for running"),
        ("stop", "stop boss"),
        ("set", "set boss --memory 1G"),
        ("archive", "archive idle"),
        ("attach", "attach child"),
        ("rm", "rm child --yes"),
        ("down", "down"),
        ("metrics", "metrics"),
        ("unlock", "unlock session:boss --kill"),
        ("command", "set evil -- other"),
        ("env", "set evil --env A=1"),
        ("parent", "set child --parent boss"),
        ("child-command", "set child -- other"),
    ];
    let tried = world.try_in("evil", &[], "", &verbs);
    let (may, may_not) = verbs.split_at(11);
    for (name, _) in may {
        assert_eq!(tried[*name].code, 0, "{name}: {:?}", tried[*name]);
    }
    for (name, _) in may_not {
        assert_eq!(tried[*name].code, 77, "{name}: {:?}", tried[*name]);
    }
    tried["stop"].is_refused("you are part of a run of session `evil`: `stop` of `boss` is not allowed");
    assert!(tried["stop"].said.contains("`may = [\"act\"]` under [agents.command]"), "{:?}", tried["stop"]);
    assert_eq!(
        (&world.show("boss")["state"], &world.show("idle")["state"]),
        (&json!("running"), &json!("idle"))
    );
    assert_eq!(world.show("child")["state"], "archived", "its own purge took it");
}

/// What a run may do with each option, `+` is allowed: by `set` of itself, of its child, of its parent and of
/// another session; and by `new` (`.` is not tried). Confined callers are refused before any option is read.
const OPTIONS: [(&str, &str, &str); 21] = [
    ("tag", "--tag t", "++--+"),
    ("idle", "--idle 7d", "++--+"),
    ("stop-grace", "--stop-grace 1m", "++--+"),
    ("budget", "--budget 1USD", "++--+"),
    ("budget-above", "--budget 3USD", "-----"),
    ("budget-none", "--budget 0USD", "-----"),
    ("turn-time", "--turn-time 1h", "++--+"),
    ("turn-time-above", "--turn-time 3h", "-----"),
    ("turn-time-none", "--turn-time 0s", "-----"),
    ("memory", "--memory 1G", "++--+"),
    ("memory-above", "--memory 3G", "-----"),
    ("memory-none", "--memory 0M", "-----"),
    ("mode", "--mode on-demand", "-+--+"),
    ("dir-inside", "--dir below", "-+--+"),
    ("dir-outside", "--dir /", "-----"),
    ("env", "--env A=1", "-+--+"),
    ("command", "-- sleep 200000", "----."),
    ("agent", "--agent claude", "----."),
    ("vendor-session", "--vendor-session x", "----+"),
    ("pty", "--pty", "----+"),
    ("parent", "--parent boss", "-----"),
];

/// The options that only `set` has, or that only a person may give at all.
const MORE: [(&str, &str); 4] = [
    ("input", "--input json"),
    ("turns", "--turns done"),
    ("new-conversation", "--new-conversation"),
    ("force", "--force --tag t"),
];

#[test]
fn no_caller_sets_more_than_the_table_says() {
    let world = world_with_others();
    std::fs::create_dir_all(world.path("below")).unwrap();
    let options = ["--budget", "2USD", "--turn-time", "2h", "--memory", "2G", "--parent", "boss"];
    let mut verbs = vec![("child".to_owned(), "new child --mode on-demand -- cat".to_owned())];
    for (name, words, _) in OPTIONS {
        for (of, session) in [("own", "evil"), ("child", "child"), ("parent", "boss"), ("other", "idle")] {
            verbs.push((format!("{of}-{name}"), format!("set {session} {words}")));
        }
        let mode = if name == "mode" { "" } else { "--mode once" };
        verbs.push((format!("new-{name}"), format!("new n-{name} {mode} {words} -- true")));
    }
    for (name, words) in MORE {
        for (of, session) in [("own", "evil"), ("child", "child")] {
            verbs.push((format!("{of}-{name}"), format!("set {session} {words}")));
        }
    }
    let named: Vec<(&str, &str)> =
        verbs.iter().map(|(name, words)| (name.as_str(), words.as_str())).collect();
    let tried = world.try_in("evil", &options, "", &named);
    let allowed = |tried: &Tried, sign: Option<char>, row: &str| {
        let expected = if sign == Some('+') { 0 } else { 77 };
        assert_eq!(tried.code, expected, "{row}: {tried:?}");
        assert!(expected == 0 || tried.said.contains("hint: "), "{row}: {tried:?}");
    };
    for (name, _, signs) in OPTIONS {
        let columns = ["own", "child", "parent", "other", "new"].into_iter().zip(signs.chars());
        for (of, sign) in columns.filter(|(_, sign)| *sign != '.') {
            allowed(&tried[&*format!("{of}-{name}")], Some(sign), &format!("{of} {name}"));
        }
    }
    for (name, _) in MORE {
        allowed(&tried[&*format!("own-{name}")], None, name);
        allowed(&tried[&*format!("child-{name}")], None, name);
    }
    let (heir, own) = (world.show("n-tag"), world.show("evil"));
    assert_eq!(
        (&own["memory_limit_bytes"], &own["pending"]),
        (&json!(2_u64 << 30), &json!({ "idle": "7d", "memory": "1G", "stop_grace": "1m" }))
    );
    assert_eq!(heir["memory_limit_bytes"], json!(2_u64 << 30), "it inherits what its parent had then");
    let widened = "[agents.command]\nmay = [\"set\"]\n";
    std::fs::write(world.home.join("config.toml"), widened).unwrap();
    world.ok(&["reload"]);
    let wide = world.try_in(
        "wide",
        &["--memory", "1G"],
        "",
        &[("raise", "set wide --memory 2G"), ("pty", "set wide --pty")],
    );
    assert_eq!((wide["raise"].code, wide["pty"].code), (0, 0), "{wide:?}");
}

#[test]
fn an_agent_that_sheds_session_and_environment_is_still_of_its_run() {
    let world = world_with_others();
    let tried =
        world.try_in("evil", &[], "bare", &[("stop", "stop boss"), ("new", "new kid -- sleep 100000")]);
    tried["stop"].is_refused("you are part of a run of session `evil`");
    assert_eq!((tried["new"].code, &world.show("kid")["parent"]), (0, &json!("evil")), "{tried:?}");
}

#[test]
fn a_run_reads_and_sends_within_its_family_only() {
    let world = world_with_others();
    world.ok(&["new", "parent", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["new", "sibling", "--parent", "parent", "--mode", "on-demand", "--", "cat"]);
    let verbs = [
        ("kid", "new kid --mode on-demand -- cat"),
        ("show-kid", "show kid"),
        ("show-parent", "show parent"),
        ("send-parent", "send parent hello"),
        ("inbox-parent", "inbox parent"),
        ("send-kid", "send kid hello"),
        ("ls", "--json ls"),
        ("events", "--json events"),
        ("show", "show boss"),
        ("send", "send boss hello"),
        ("sibling", "send sibling hello"),
        ("stop-parent", "stop parent"),
    ];
    let tried = world.try_in("evil", &["--parent", "parent"], "", &verbs);
    let (may, may_not) = verbs.split_at(8);
    for (name, _) in may {
        assert_eq!(tried[*name].code, 0, "{name}: {:?}", tried[*name]);
    }
    for (name, _) in may_not {
        assert_eq!(tried[*name].code, 77, "{name}: {:?}", tried[*name]);
    }
    for list in [&tried["ls"].said, &tried["events"].said] {
        let shown = |name: &str| list.contains(&format!("\"{name}\""));
        assert!(shown("evil") && shown("parent") && shown("kid"), "{list}");
        assert!(!shown("boss") && !shown("sibling"), "{list}");
    }
}

#[test]
fn what_a_run_makes_is_its_child_in_its_own_directory_with_its_own_environment() {
    let world = world_with_others();
    let (work, below) = (world.path("work"), world.path("work/below"));
    std::fs::create_dir_all(&below).unwrap();
    let verbs = [
        ("inside", &*format!("new inside --dir {} -- sleep 100000", below.display())),
        ("outside", &*format!("new outside --dir {} -- sleep 100000", world.root.display())),
        ("other", &*format!("new other --parent boss --dir {} -- sleep 100000", below.display())),
        ("over", &*format!("new inside --dir {} -- sleep 100000", below.display())),
    ];
    let own = ["--dir", work.to_str().unwrap(), "--no-dir-lock", "--env", "OWN=yes"];
    let tried = world.try_in("evil", &own, "", &verbs);
    assert_eq!((tried["inside"].code, tried["over"].code), (0, 73), "{tried:?}");
    tried["outside"].is_refused("is not inside");
    tried["other"].is_refused("is its child");
    assert_eq!(world.show("inside")["parent"], "evil");
    assert_eq!(crate::processes::variable(world.pid("inside"), "OWN").as_deref(), Some("yes"));
}

#[test]
fn a_run_makes_so_many_children_and_generations_and_no_more() {
    let world = world_with_others();
    std::fs::write(world.home.join("config.toml"), "[policy]\nchild_limit = 2\nchild_depth = 1\n").unwrap();
    world.ok(&["down"]);
    world.ok(&["new", "grandparent", "--mode", "on-demand", "--", "cat"]);
    let verbs = [
        ("one", "new one --mode on-demand -- cat"),
        ("two", "new two --mode on-demand -- cat"),
        ("three", "new three --mode on-demand -- cat"),
    ];
    let tried = world.try_in("evil", &[], "", &verbs);
    assert_eq!((tried["one"].code, tried["two"].code), (0, 0), "{tried:?}");
    tried["three"].is_refused("has 2 children");
    let deep =
        world.try_in("deep", &["--parent", "grandparent"], "", &[("new", "new n --mode on-demand -- cat")]);
    deep["new"].is_refused("1 generations down");
}

#[test]
fn only_the_configuration_widens_what_a_caller_may() {
    let world = world_with_others();
    let wider =
        "[agents.command]\nmay = [\"send\", \"new\"]\n[sessions.boxed.policy]\nconfined = \"allow\"\n";
    std::fs::write(world.home.join("config.toml"), wider).unwrap();
    world.ok(&["down"]);
    world.ok(&["up"]);
    let verbs = [
        ("send", "send boss hello"),
        ("new", "new free --dir / --no-dir-lock -- sleep 100000"),
        ("stop", "stop boss"),
    ];
    let tried = world.try_in("evil", &[], "", &verbs);
    assert_eq!((tried["send"].code, tried["new"].code, tried["stop"].code), (0, 0, 77), "{tried:?}");
    assert_eq!(world.show("free")["parent"], json!(null), "as a person does");
    let verbs = [("new", "new kid --mode on-demand -- cat"), ("stop", "stop boss")];
    let boxed = world.try_in("boxed", &[], "no_new_privs", &verbs);
    assert_eq!((boxed["new"].code, boxed["stop"].code), (0, 77), "{boxed:?}");
    boxed["stop"].is_refused("you are part of a run of session `boxed`");
}

#[test]
fn every_message_and_event_says_who_it_is_from() {
    let world = world_with_others();
    let heard = "while IFS= read -r line; do echo \"$line\" >>\"$ROOT/heard\"; done";
    world.ok(&["new", "reader", "--mode", "on-demand", "--env", "ROOT", "--", "sh", "-c", heard]);
    let verbs = [("send", "send reader deploy"), ("kid", "new kid -- sleep 100000"), ("stop", "stop kid")];
    let tried = world.try_in("evil", &["--parent", "reader"], "", &verbs);
    assert!(tried.values().all(|tried| tried.code == 0), "{tried:?}");
    world.ok(&["send", "reader", "mine"]);
    let inbox = world.json(&["inbox", "reader"]);
    assert_eq!((&inbox[0]["from"], &inbox[1]["from"]), (&json!("evil"), &json!(null)));
    assert!(world.ok(&["inbox", "reader"]).stdout.contains("[from session evil] deploy"));
    let heard = wait_for("both messages", || {
        let heard = std::fs::read_to_string(world.path("heard")).unwrap_or_default();
        (heard.lines().count() == 2).then_some(heard)
    });
    assert_eq!(heard, "[from session evil] deploy\nmine\n");
    let by = |session: &str, kind: &str| world.events_of(session, kind)[0]["by"].clone();
    assert_eq!(
        (&by("kid", "session_created")["session"], &by("kid", "stopped")["session"]),
        (&json!("evil"), &json!("evil"))
    );
    assert_eq!(by("reader", "message_queued")["kind"], "session");
    let person = by("boss", "session_created");
    assert_eq!((&person["kind"], &person["exe"]), (&json!("person"), &json!(world.binary)));
    assert!(person["pid"].is_u64() && person["user"].is_u64() && by("kid", "run_started").is_null());
    world.ok(&["down"]);
    world.ok(&["up"]);
    let stopped = world.events().into_iter().find(|event| event["kind"] == "daemon_stopped").unwrap();
    assert_eq!(stopped["by"]["kind"], "person");
}

#[test]
fn an_agent_that_reads_json_is_told_who_sent_a_message() {
    let world = World::new();
    let heard = "while IFS= read -r line; do echo \"$line\" >>\"$ROOT/heard\"; done";
    let options = ["--mode", "on-demand", "--input", "json", "--env", "ROOT"];
    world.ok(&[&["new", "reader"], &options[..], &["--", "sh", "-c", heard]].concat());
    world.try_in("evil", &["--parent", "reader"], "", &[("send", "send reader deploy")]);
    let heard = wait_for("the message", || {
        let heard = std::fs::read_to_string(world.path("heard")).ok()?;
        serde_json::from_str::<serde_json::Value>(heard.lines().next()?).ok()
    });
    assert_eq!((&heard["text"], &heard["from"]), (&json!("deploy"), &json!("evil")));
}

/// Ways in which people's shells are started; each runs its command, in the background or not, and waits for its end.
const LAUNCHERS: [(&str, &str); 5] = [
    ("a session of its own", "setsid --wait \"$@\""),
    (
        "a parent that has gone, as cron's and systemd's",
        "(setsid \"$@\" & ) ; while ! test -e \"$DONE\"; do sleep 0.02; done",
    ),
    ("a terminal of its own, as tmux and editors make one", "script -qec \"$*\" /dev/null </dev/null"),
    ("an environment that was cleared", "env -i \"$@\""),
    ("nohup", "nohup \"$@\" </dev/null"),
];

#[test]
fn a_person_is_a_person_however_the_shell_came_about() {
    let world = World::new();
    world.ok(&["up"]);
    LAUNCHERS.into_iter().enumerate().for_each(|(number, launched)| is_a_person(&world, number, launched));
}

#[test]
fn a_person_who_has_logged_in_again_is_a_person() {
    // Root is not asked for a password.
    needs!(OtherUser);
    let world = World::new();
    world.ok(&["up"]);
    is_a_person(&world, 0, ("another login", "su -s /bin/sh \"$(id -un)\" -c \"$*\""));
}

#[track_caller]
fn is_a_person(world: &World, number: usize, (what, launcher): (&str, &str)) {
    let (name, done) = (format!("s{number}"), world.path(&format!("done{number}")));
    let words = format!(
        "env PINFOLD_HOME={} PINFOLD_LOCKS={} {} new {name} --mode on-demand -- /bin/cat; echo $? >{}",
        world.home.display(),
        world.path("locks").display(),
        world.binary.display(),
        done.display()
    );
    let script = world.path(&format!("script{number}"));
    std::fs::write(&script, words).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", launcher, "sh", "/bin/sh", script.to_str().unwrap()]).env("DONE", &done);
    let answer = finish(&mut shell);
    let code = std::fs::read_to_string(&done).unwrap_or_default();
    assert_eq!(code.trim(), "0", "{what}: {answer:?}");
    assert_eq!(world.events_of(&name, "session_created")[0]["by"]["kind"], "person", "{what}");
}

#[test]
fn a_directory_that_became_a_link_is_another_one() {
    let world = World::new();
    for (name, option) in [("locked", "--pty"), ("used", "--no-dir-lock")] {
        let (own, other) = (world.path(name), world.path(&format!("{name}-other")));
        std::fs::create_dir_all(own.join("deep")).unwrap();
        std::fs::create_dir_all(other.join("deep")).unwrap();
        let dir = own.join("deep");
        let agent = ["--", "sh", "-c", "echo here >here; exec sleep 100000"];
        world.ok(&[&["new", name, "--dir", dir.to_str().unwrap(), option], &agent[..]].concat());
        world.ok(&["stop", name]);
        std::fs::rename(&own, world.path(&format!("{name}-moved"))).unwrap();
        std::os::unix::fs::symlink(&other, &own).unwrap();
        let started = world.run(&["start", name]);
        assert!(started.code == 1 && started.stderr.contains("the directory is another one"), "{started:?}");
        assert_eq!(world.show(name)["state"], "failed");
        assert!(!other.join("deep/here").exists(), "nothing ran there");
        std::fs::remove_file(&own).unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        world.ok(&["start", name]);
        wait_for("the agent", || dir.join("here").exists().then_some(()));
    }
}
