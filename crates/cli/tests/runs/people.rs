//! What people meet when they use it: pages, names, variables, mistakes. `docs/design/018-people.md` has the table.

use crate::processes;
use crate::tty::Tty;
use crate::world::{World, finish};
use rustix::process::Signal;
use serde_json::json;

#[test]
fn the_last_exit_is_told_in_words_everywhere() {
    let world = World::new();
    let script = "sleep 0.2; echo 'RuntimeError: boom' >&2; exit 1";
    world.ok(&["new", "crasher", "--", "sh", "-c", script]);
    world.wait("crasher", "backoff");
    let told = "exited with 1 after ";
    for words in [&["why", "crasher"][..], &["ls"], &["show", "crasher"]] {
        let said = world.ok(words).stdout;
        assert!(said.contains(told) && said.contains("`RuntimeError: boom`"), "{words:?}: {said}");
        assert!(said.contains("crashed once, next run in "), "{words:?}: {said}");
    }
    let waited = world.ok(&["wait", "crasher", "--for", "backoff"]);
    assert!(waited.stderr.contains(told), "{waited:?}");
}

#[test]
fn show_is_one_page() {
    let world = World::new();
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $n; done; sleep 100000; true";
    let pid = world.json(&["new", "api", "--", "sh", "-c", script])["pid"].clone();
    world.printed("api", "line 12");
    let page = world.ok(&["show", "api"]).stdout;
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines[0], "● api (command, always)");
    for fact in ["State: running for ", "Memory: ", "Since: ", "Directory: ", "Command: sh -c "] {
        assert!(page.contains(fact), "{fact}: {page}");
    }
    assert!(page.contains(&format!("{pid} sh -c ")) && page.contains("└─ "), "{page}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("20")).count(), 10, "{page}");
    assert!(!page.contains("Policy: ") && !page.contains("null"), "{page}");
    let object = world.show("api");
    assert_eq!(object["processes"][0]["pid"], pid);
    assert_eq!(object["processes"][1]["parent"], pid);
    assert!(object["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{object}");
    assert!(world.json(&["ls"])[0]["processes"].is_null());
}

#[test]
fn times_are_local_for_people_and_utc_in_json() {
    let world = World::new();
    world.ok(&["up"]);
    let said = |zone: &str| {
        let answer = finish(world.command(&["events", "-n", "1"]).env("TZ", zone));
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.stdout.split_whitespace().nth(2).unwrap()[..2].parse::<i32>().unwrap()
    };
    assert_eq!((said("UTC0") - said("XXX5")).rem_euclid(24), 5);
    assert!(world.events()[0]["at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn one_thing_that_happened_is_one_line_of_events() {
    let world = World::new();
    world.ok(&["new", "job", "--mode", "once", "--", "sh", "-c", "exit 3"]);
    world.wait("job", "failed");
    let said = world.ok(&["events", "--session", "job"]).stdout;
    let why = |line: &str| line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
    let mut whys: Vec<String> = said.lines().map(why).collect();
    let all = whys.len();
    whys.dedup();
    assert_eq!(whys.len(), all, "{said}");
    assert!(said.contains("run_exited") && !said.contains("noted"), "{said}");
}

#[test]
fn logs_of_several_sessions_say_whose_and_when_and_nothing_is_cut_in_a_pipe() {
    let world = World::new();
    let count = "n=0; while [ $n -lt 500 ]; do n=$((n+1)); echo line $n; done; exec sleep 100000";
    world.ok(&["new", "a", "--", "sh", "-c", count]);
    world.ok(&["new", "long", "--", "sh", "-c", "echo once; exec sleep 100000"]);
    world.printed("a", "line 500");
    world.printed("long", "once");
    assert_eq!(world.ok(&["logs", "a"]).stdout.lines().count(), 500);
    assert_eq!(world.ok(&["logs", "a", "-n", "2"]).stdout, "line 499\nline 500\n");
    assert_eq!(world.ok(&["logs", "a", "--tail", "all"]).stdout.lines().count(), 500);
    let both = world.ok(&["logs", "a", "long", "-n", "1"]).stdout;
    assert_eq!(both, "a    | line 500\nlong | once\n");
    let timed = world.ok(&["logs", "long", "-t"]).stdout;
    assert!(timed.starts_with("20") && timed.ends_with(" once\n"), "{timed}");
    assert_eq!(world.ok(&["logs", "long", "--since", "1h"]).stdout, "once\n");
    assert_eq!(world.ok(&["logs", "long", "--since", "2100-01-01T00:00:00Z"]).stdout, "");
    let mut tty = Tty::start(world.command(&["logs", "a"]), 600, 80);
    tty.ended();
    assert!(tty.comes_to("300 earlier lines are not shown; `-n all` shows them"));
    let object = world.json(&["logs", "a", "long", "-n", "1"]);
    assert_eq!((&object[0]["session"], &object[1]["text"]), (&json!("a"), &json!("once")));
}

#[test]
fn whoever_follows_goes_on_over_the_death_of_the_daemon() {
    let world = World::new();
    let script = "n=0; while read -r line; do n=$((n+1)); echo \"$n $line\"; done";
    world.ok(&["new", "echo", "--", "sh", "-c", script]);
    let logs = world.follow(&["logs", "-f", "echo"]);
    let events = world.follow(&["events", "-f", "--session", "echo"]);
    world.ok(&["send", "echo", "before"]);
    logs.until("the first line", |line| line == "1 before");
    for round in 2..5 {
        world.kill_daemon();
        world.ok(&["up"]);
        world.ok(&["send", "echo", &format!("round {round}")]);
        let line = logs.until("the next line", |line| line.contains("round") || line.contains("before"));
        assert_eq!(line, format!("{round} round {round}"), "nothing twice, nothing left out");
    }
    events.until("the message of the last round", |line| line.contains("message_queued"));
}

#[test]
fn a_session_without_a_name_is_called_after_its_directory_and_its_agent() {
    let world = World::new();
    std::fs::create_dir(world.path("my api")).unwrap();
    let made = || {
        let words = ["new", "--no-dir-lock", "--dir", "my api", "--mode", "on-demand", "--", "cat"];
        let said = world.ok(&words).stdout;
        let (id, name) =
            said.trim().split_once(' ').map(|(id, name)| (id.to_owned(), name.to_owned())).unwrap();
        assert_eq!(world.show(&name)["id"], id);
        name
    };
    assert_eq!(
        [made(), made(), made(), made()],
        ["my-api", "my-api-command", "my-api-command-2", "my-api-command-3"]
    );
}

#[test]
fn a_session_is_renamed_while_nothing_of_it_runs() {
    let world = World::new();
    let id = world.json(&["new", "a", "--mode", "on-demand", "--", "cat"])["id"].clone();
    world.ok(&["new", "child", "--parent", "a", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["send", "a", "hello"]);
    world.wait("a", "running,idle");
    world.ok(&["stop", "a"]);
    world.ok(&["rename", "a", "b"]);
    assert_eq!((&world.show("b")["id"], &world.show("child")["parent"]), (&id, &json!("b")));
    assert_eq!(world.run(&["show", "a"]).code, 1);
    world.ok(&["new", "a", "--mode", "on-demand", "--", "cat"]);
    assert_eq!(world.run(&["rename", "b", "a"]).code, 73);
    world.kill_daemon();
    assert_eq!((&world.show("b")["id"], &world.show("child")["parent"]), (&id, &json!("b")));
    assert_eq!(world.events_of("b", "renamed")[0]["from"], "a");
    world.ok(&["start", "b"]);
    let refused = world.run(&["rename", "b", "c"]);
    assert_eq!(refused.code, 75, "{refused:?}");
    let locks = world.json(&["locks"]);
    assert!(locks.as_array().unwrap().iter().any(|lock| lock["resource"] == "session:b"), "{locks}");
}

#[test]
fn rm_archives_what_rests_and_leaves_what_lives() {
    let world = World::new();
    world.ok(&["new", "idle", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["new", "live", "--", "sleep", "100000"]);
    world.ok(&["rm", "idle", "--yes"]);
    assert_eq!(world.run(&["show", "idle"]).code, 1);
    let refused = world.run(&["rm", "live", "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("pinfold archive live"), "{refused:?}");
    assert_eq!(world.show("live")["state"], "running");
    world.ok(&["stop", "live"]);
    world.ok(&["rm", "live", "--yes"]);
    assert_eq!(world.json(&["ls", "-a"]), json!([]));
}

#[test]
fn what_an_agent_needs_and_is_not_given_is_said() {
    let world = World::new();
    let program = world.path("claude");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 100000\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let new = |name: &str, words: &[&str]| {
        let mut command = world.command(&[&["new", name, "--mode", "on-demand"], words].concat());
        for others in [
            "AWS_SECRET_ACCESS_KEY",
            "DBUS_SESSION_BUS_ADDRESS",
            "DISPLAY",
            "GITHUB_TOKEN",
            "GPG_TTY",
            "NODE_EXTRA_CA_CERTS",
            "SSL_CERT_FILE",
        ] {
            command.env_remove(others);
        }
        let answer = finish(command.env("ANTHROPIC_API_KEY", "sk-secret").env("SSH_AUTH_SOCK", "/agent"));
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(!format!("{answer:?}").contains("sk-secret"));
        answer.stderr
    };
    let program = program.display().to_string();
    let said = new("a", &["--", &program]);
    assert!(
        said.contains("note: not passed on: ANTHROPIC_API_KEY, SSH_AUTH_SOCK; `--env ANTHROPIC_API_KEY`"),
        "{said}"
    );
    let said = new("b", &["--env", "ANTHROPIC_API_KEY", "--env", "SSH_AUTH_SOCK", "--", &program]);
    assert!(!said.contains("not passed on"), "{said}");
    assert_eq!(new("c", &["--", "sleep", "100000"]), "");
}

#[test]
fn a_session_made_inside_a_session_is_its_child() {
    let world = World::new();
    let script = format!("{} new kid --mode on-demand -- cat; exec sleep 100000", world.binary.display());
    world.ok(&["new", "parent", "--", "sh", "-c", &script]);
    world.until("its child", || world.sessions().contains_key("kid").then_some(()));
    assert_eq!(world.show("kid")["parent"], "parent");
}

#[test]
fn a_name_that_is_nearly_right_is_named() {
    let world = World::new();
    world.ok(&["new", "crasher", "--mode", "on-demand", "--", "cat"]);
    for wanted in ["crashr", "cras", "Crasher"] {
        let answer = world.run(&["why", wanted]);
        assert!(answer.stderr.contains("the nearest one is `crasher`"), "{answer:?}");
    }
    assert!(!world.run(&["why", "nobody"]).stderr.contains("nearest"));
}

#[test]
fn pinfold_alone_prints_the_list() {
    let world = World::new();
    world.ok(&["new", "a", "--mode", "on-demand", "--", "cat"]);
    assert_eq!(world.ok(&[]).stdout, world.ok(&["ls"]).stdout);
    assert_eq!(world.json(&[])[0]["name"], "a");
    let empty = World::new();
    let said = empty.ok(&[]).stderr;
    assert!(said.contains(&format!("no sessions in {}", empty.home.display())), "{said}");
}

#[test]
fn a_stop_that_takes_long_counts_down_on_a_terminal() {
    let world = World::new();
    world.ok(&["new", "deaf", "--", "sh", "-c", "trap '' TERM; while :; do sleep 1; done"]);
    let mut tty = Tty::start(world.command(&["stop", "deaf", "--timeout", "3s"]), 24, 80);
    assert!(tty.comes_to("stopping deaf (SIGKILL in "), "{}", tty.everything());
    assert!(tty.ended().success());
    world.ok(&["start", "deaf"]);
    let piped = world.ok(&["stop", "deaf", "--timeout", "2s"]);
    assert!(!piped.stderr.contains("SIGKILL in") && !piped.stderr.contains('\x1b'), "{piped:?}");
}

#[test]
fn who_names_the_session_of_a_process_that_only_works_there() {
    let world = World::new();
    let (home, place) = (world.path("home-of-it"), world.path("elsewhere"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(place.join("deep")).unwrap();
    let script = "cd \"$ROOT/elsewhere/deep\"; setsid -f sleep 100000; exec sleep 100000";
    let dir = home.display().to_string();
    world.ok(&["new", "guest", "--env", "ROOT", "--dir", &dir, "--", "sh", "-c", script]);
    let mut stranger = std::process::Command::new("sleep").arg("100000").current_dir(&place).spawn().unwrap();
    let at = place.display().to_string();
    let users = world.until("both sleep there", || {
        let users = world.json(&["who", &at]).as_array().unwrap().clone();
        let sleeps =
            |one: &&serde_json::Value| one["command"].as_str().is_some_and(|all| all.starts_with("sleep"));
        (users.iter().filter(sleeps).count() == 3).then_some(users)
    });
    for user in &users {
        let of = if user["pid"] == stranger.id() { json!(null) } else { json!("guest") };
        assert_eq!((&user["how"], &user["session"]), (&json!("works"), &of), "{user}");
    }
    let table = world.ok(&["who", &at]).stdout;
    let own = table.lines().find(|line| line.starts_with(&stranger.id().to_string())).unwrap();
    assert!(table.contains(" guest ") && !own.contains("guest"), "{table}");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_purge_that_takes_long_says_how_many_runs_are_ending() {
    let world = World::new();
    for name in ["a", "b"] {
        let deaf = "trap '' TERM; echo deaf; while :; do sleep 1; done";
        let options = ["--mode", "on-demand", "--stop-grace", "3s", "--", "sh", "-c", deaf];
        world.ok(&[&["new", name], &options as &[&str]].concat());
        world.ok(&["start", name]);
        world.until("it is deaf", || world.ok(&["logs", name]).stdout.contains("deaf").then_some(()));
    }
    let mut tty = Tty::start(world.command(&["purge", "--include-active"]), 24, 80);
    assert!(tty.comes_to("archiving: 2 runs are ending"), "{}", tty.everything());
    assert!(tty.ended().success());
    tty.shows("b is archived");
    assert!(!tty.contents().contains("are ending"), "{}", tty.contents());
}

#[test]
fn an_up_that_takes_long_says_how_many_sessions_were_looked_at() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.guarded(name, &[], "exec sleep 100000");
    }
    let shim = world.show("a")["shim_pid"].as_u64().unwrap();
    world.kill_daemon();
    let shim = processes::Held::open(u32::try_from(shim).unwrap()).unwrap();
    shim.signal(Signal::STOP);
    let mut tty = Tty::start(world.command(&["up"]), 24, 80);
    let came = tty.comes_to("starting: 2 of 3 sessions are looked at");
    shim.signal(Signal::CONT);
    assert!(came, "{}", tty.everything());
    assert!(tty.ended().success());
    tty.shows("the daemon is up");
    assert!(!tty.contents().contains("looked at"), "{}", tty.contents());
}

#[test]
fn a_list_that_is_watched_changes_with_the_sessions() {
    let world = World::new();
    world.ok(&["new", "a", "--mode", "on-demand", "--", "cat"]);
    let tty = Tty::start(world.command(&["ls", "-w"]), 24, 80);
    tty.shows("not needed yet");
    world.ok(&["new", "later", "--mode", "on-demand", "--", "cat"]);
    tty.shows("later");
    world.ok(&["archive", "a"]);
    tty.until("a list without it", |screen| {
        let text = screen.contents();
        text.contains("later") && !text.lines().any(|line| line.starts_with("a "))
    });
}

#[test]
fn completions_know_sessions_and_their_states_and_start_nothing() {
    let world = World::new();
    let complete = |words: &[&str]| world.ok(&[&["complete", "--"], words].concat()).stdout;
    assert_eq!(complete(&["stop", ""]), "");
    assert!(!world.home.join("pinfold.db").exists(), "a daemon was started");
    world.ok(&["new", "api", "--", "sleep", "100000"]);
    world.ok(&["new", "apx", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["new", "old", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["archive", "old"]);
    let names = |words: &[&str]| {
        complete(words)
            .lines()
            .map(|line| line.split('\t').next().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names(&["show", "a"]), "api apx");
    assert_eq!(names(&["start", ""]), "apx");
    assert_eq!(names(&["restore", ""]), "old");
    assert!(complete(&["show", "api"]).starts_with("api\trunning for "));
    assert_eq!(names(&["new", "x", "--agent", "cla"]), "claude");
    let bash = format!(
        "eval \"$({0} completions bash)\"; COMP_WORDS=({0} show ap); COMP_CWORD=2; _pinfold; echo \"${{COMPREPLY[@]}}\"",
        world.binary.display()
    );
    let mut command = world.command(&[]);
    let envs: Vec<_> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command = std::process::Command::new("bash");
    let answer = finish(command.args(["-c", &bash]).envs(envs));
    assert_eq!(answer.stdout, "api apx\n", "{answer:?}");
}

#[test]
fn agents_are_left_alone_by_everything_that_only_looks() {
    let world = World::new();
    let pid = world.json(&["new", "a", "--", "sleep", "100000"])["pid"].as_u64().unwrap();
    for words in [
        &["ls"][..],
        &["show", "a"],
        &["why", "a"],
        &["tree"],
        &["logs", "a"],
        &["locks"],
        &["who"],
        &["help"],
    ] {
        world.ok(words);
    }
    assert!(processes::lives(u32::try_from(pid).unwrap()));
    assert_eq!(world.pid("a"), u32::try_from(pid).unwrap());
}
