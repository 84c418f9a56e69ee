//! One home has one daemon, found from everywhere, even if its socket was removed.

use crate::http;
use crate::processes::{Held, PATIENCE, kill, lives};
use crate::tty::Tty;
use crate::world::{Answer, Ends, World, finish, finish_within, held, number};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Every verb ends within this time, whatever its daemon does.
const LIMIT: Duration = crate::processes::PATIENCE;

/// The usual home of a user, seen from a login with a runtime folder, or from one without, as in cron.
struct User {
    world: World,
}

impl User {
    fn new() -> User {
        let mut world = World::new();
        world.home = world.path("user/.local/state/pinfold");
        std::fs::create_dir(world.path("user")).unwrap();
        User { world }
    }

    /// The runtime folder of a login.
    fn runtime(&self, name: &str) -> PathBuf {
        let folder = self.world.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn command(&self, runtime: Option<&Path>, words: &[&str]) -> Command {
        let mut command = self.world.command(words);
        for variable in ["PINFOLD_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        command.env("HOME", self.world.path("user"));
        runtime.into_iter().for_each(|folder| _ = command.env("XDG_RUNTIME_DIR", folder));
        command
    }

    fn run(&self, runtime: Option<&Path>, words: &[&str]) -> Answer {
        finish_within(&mut self.command(runtime, words), LIMIT)
    }

    fn ok(&self, runtime: Option<&Path>, words: &[&str]) -> Answer {
        let answer = self.run(runtime, words);
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}\n{}", self.world.daemon_log());
        answer
    }

    fn json(&self, runtime: Option<&Path>, words: &[&str]) -> Value {
        self.ok(runtime, &[&["--json"], words].concat()).json()
    }

    fn daemon(&self, runtime: Option<&Path>) -> u32 {
        number(&self.json(runtime, &["status"])["pid"])
    }
}

/// Waits until a condition holds.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what} does not come true");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for a process that was said to have ended.
fn has_ended(pid: u32) {
    Held::open(pid).into_iter().for_each(|process| process.wait());
}

/// A stopped process, which goes on when the test is over.
struct Stopped(Held);

impl Stopped {
    fn new(pid: u32) -> Stopped {
        let process = held(pid);
        process.signal(Signal::STOP);
        Stopped(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}

#[test]
fn a_daemon_whose_runtime_folder_was_removed_makes_it_again() {
    let user = User::new();
    let runtime = user.runtime("run");
    user.ok(Some(&runtime), &["new", "a", "--", "sleep", "100000"]);
    let (daemon, before) = (user.daemon(Some(&runtime)), user.json(Some(&runtime), &["show", "a"]));
    let away = || {
        std::fs::remove_dir_all(runtime.join("pinfold")).unwrap();
        let gone = Instant::now();
        until("the socket is back", || runtime.join("pinfold/pinfold.sock").exists());
        gone.elapsed()
    };
    // A busy machine may be late once, but not always.
    assert!((0..5).any(|_| away() < Duration::from_secs(2)));
    assert_eq!(user.daemon(Some(&runtime)), daemon);
    assert_eq!(user.json(Some(&runtime), &["show", "a"])["pid"], before["pid"]);
    let mode = |path: &str| std::fs::metadata(runtime.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("pinfold"), mode("pinfold/pinfold.sock")), (0o700, 0o600));
    user.ok(Some(&runtime), &["stop", "a"]);
    user.ok(Some(&runtime), &["down"]);
    has_ended(daemon);
}

#[test]
fn a_socket_that_was_removed_does_not_make_a_daemon_count_as_down() {
    let user = User::new();
    let runtime = user.runtime("run");
    user.ok(Some(&runtime), &["new", "a", "--", "sleep", "100000"]);
    let (daemon, agent) =
        (user.daemon(Some(&runtime)), number(&user.json(Some(&runtime), &["show", "a"])["pid"]));
    std::fs::remove_dir_all(runtime.join("pinfold")).unwrap();
    assert_eq!(user.json(Some(&runtime), &["down"])["was_up"], true);
    has_ended(daemon);
    assert!(!lives(agent));
}

#[test]
fn a_runtime_folder_that_is_gone_for_good_is_replaced_by_the_home_also_for_shims() {
    let user = User::new();
    let runtime = user.runtime("run");
    user.ok(Some(&runtime), &["new", "a", "--", "sleep", "100000"]);
    let before = user.json(Some(&runtime), &["show", "a"]);
    // As after the last logout: only root can make the folder again.
    std::fs::remove_dir_all(&runtime).unwrap();
    std::fs::write(&runtime, "").unwrap();
    let daemon = user.daemon(None);
    assert_eq!(user.json(Some(&runtime), &["show", "a"])["pid"], before["pid"]);
    kill(daemon);
    user.ok(None, &["up"]);
    user.ok(None, &["wait", "a", "--for", "running", "--timeout", "8s"]);
    let after = user.json(None, &["show", "a"]);
    assert_eq!((&after["pid"], &after["run"]), (&before["pid"], &before["run"]));
    user.ok(None, &["stop", "a"]);
}

#[test]
fn a_daemon_of_a_login_is_reached_from_one_without_a_runtime_folder_and_from_another() {
    let user = User::new();
    let (one, other) = (user.runtime("one"), user.runtime("other"));
    user.ok(Some(&one), &["new", "a", "--", "sleep", "100000"]);
    let daemon = user.daemon(Some(&one));
    for runtime in [None, Some(other.as_path()), Some(Path::new("/nonexistent"))] {
        assert_eq!(user.daemon(runtime), daemon, "{runtime:?}");
        user.ok(runtime, &["why", "a"]);
    }
    assert_eq!(user.json(None, &["down"])["was_up"], true);
    has_ended(daemon);
}

#[test]
fn a_daemon_without_a_runtime_folder_is_reached_from_a_login_that_has_one() {
    let user = User::new();
    let runtime = user.runtime("run");
    user.ok(None, &["up"]);
    let daemon = user.daemon(None);
    assert_eq!(user.daemon(Some(&runtime)), daemon);
    user.ok(Some(&runtime), &["ls"]);
    assert_eq!(user.json(Some(&runtime), &["down"])["was_up"], true);
    has_ended(daemon);
}

#[test]
fn agents_are_taken_over_by_a_daemon_of_another_login() {
    let user = User::new();
    let (one, other) = (user.runtime("one"), user.runtime("other"));
    user.ok(Some(&one), &["new", "a", "--", "sleep", "100000"]);
    let before = user.json(Some(&one), &["show", "a"]);
    kill(user.daemon(Some(&one)));
    user.ok(Some(&other), &["up"]);
    user.ok(Some(&other), &["wait", "a", "--for", "running", "--timeout", "8s"]);
    let after = user.json(Some(&other), &["show", "a"]);
    assert_eq!((&after["pid"], &after["run"]), (&before["pid"], &before["run"]));
    user.ok(Some(&one), &["stop", "a"]);
}

#[test]
fn two_homes_with_one_runtime_folder_are_two_daemons() {
    let (one, other) = (User::new(), User::new());
    let runtime = one.runtime("run");
    one.ok(Some(&runtime), &["new", "mine", "--", "sleep", "100000"]);
    other.ok(Some(&runtime), &["new", "theirs", "--", "sleep", "100000"]);
    assert_ne!(one.daemon(Some(&runtime)), other.daemon(Some(&runtime)));
    let names = |user: &User| {
        let list = user.json(Some(&runtime), &["ls"]);
        list.as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!((names(&one), names(&other)), (vec!["mine".into()], vec!["theirs".into()]));
    one.ok(Some(&runtime), &["down"]);
    assert_eq!(one.run(Some(&runtime), &["status"]).code, 69);
    assert_eq!(names(&other), ["theirs"]);
    other.ok(Some(&runtime), &["down"]);
}

#[test]
fn a_home_that_says_nothing_or_nonsense_of_its_daemon_is_asked_at_the_usual_place() {
    let world = World::new();
    world.ok(&["up"]);
    let daemon = world.daemon_pid();
    for nonsense in ["", "17", "17\n/nowhere.sock\n", "\0\0\0\0", "17\n/etc/passwd\n"] {
        std::fs::write(world.home.join("daemon.place"), nonsense).unwrap();
        assert_eq!(number(&world.within(LIMIT, &["--json", "status"]).json()["pid"]), daemon, "{nonsense:?}");
    }
    _ = std::fs::remove_file(world.home.join("daemon.place"));
    assert_eq!(number(&world.within(LIMIT, &["--json", "status"]).json()["pid"]), daemon);
}

/// What every verb says about a daemon that is stopped.
fn is_mute(answer: &Answer, daemon: u32) {
    assert_eq!(answer.code, 69, "{answer:?}");
    assert!(answer.stderr.contains(&format!("pid {daemon}")), "{answer:?}");
    assert!(answer.stderr.contains(&format!("hint: it is stopped: `kill -CONT {daemon}`")), "{answer:?}");
}

#[test]
fn every_verb_names_a_daemon_that_does_not_run_and_ends_nothing() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    let (daemon, agent) = (world.daemon_pid(), world.pid("a"));
    let stopped = Stopped::new(daemon);
    let verbs: [&[&str]; 9] = [
        &["ls"],
        &["status"],
        &["why", "a"],
        &["up"],
        &["down"],
        &["up", "--replace"],
        &["send", "a", "hello"],
        &["new", "b", "--", "true"],
        &["attach", "a"],
    ];
    std::thread::scope(|scope| {
        for verb in verbs {
            scope.spawn(|| is_mute(&world.within(LIMIT, verb), daemon));
        }
    });
    assert!(lives(daemon) && lives(agent));
    drop(stopped);
    assert_eq!((world.daemon_pid(), world.pid("a")), (daemon, agent));
}

#[test]
fn a_daemon_that_is_stopped_while_verbs_wait_for_it_is_noticed() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    world.guarded("stubborn", &["--stop-grace", "60s"], "trap '' TERM; while :; do sleep 1; done");
    let daemon = world.daemon_pid();
    let verbs: [&[&str]; 5] = [
        &["wait", "a", "--for", "stopped"],
        &["logs", "a", "-f"],
        &["events", "-f", "--since", "0"],
        &["attach", "a", "--read-only"],
        &["stop", "stubborn"],
    ];
    let spawn = |words: &&[&str]| {
        let mut command = world.command(words);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = verbs.iter().map(spawn).collect();
    // All of them wait for the daemon: each has a connection, and the last one has sent its request.
    until("the stop is asked", || world.show("stubborn")["state"] == "stopping");
    until("all are connected", || {
        let connected = |child: &std::process::Child| {
            crate::processes::open_files(child.id()).iter().any(|(_, file)| file.starts_with("socket:"))
        };
        children.iter().all(connected)
    });
    let stopped = Stopped::new(daemon);
    let since = Instant::now();
    for (child, words) in children.into_iter().zip(verbs) {
        assert!(held(child.id()).ends_within(LIMIT.saturating_sub(since.elapsed())), "{words:?}");
        let answer = child.finished();
        assert_eq!(answer.code, 69, "{words:?}: {answer:?}");
        assert!(answer.stderr.contains(&format!("pid {daemon}")), "{words:?}: {answer:?}");
    }
    drop(stopped);
}

#[test]
fn a_verb_has_no_deadline_while_its_daemon_gives_signs_of_life() {
    let world = World::new();
    // Longer than a daemon may take to answer a ping.
    world.guarded("stubborn", &["--stop-grace", "6s"], "trap '' TERM; while :; do sleep 0.1; done");
    let answer = world.within(Duration::from_secs(20), &["stop", "stubborn"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.took > Duration::from_secs(5), "{answer:?}");
    world.assert_no_members();
}

#[test]
fn a_stopped_daemon_with_a_full_queue_of_connections_is_named_too() {
    let world = World::new();
    world.ok(&["up"]);
    let daemon = world.daemon_pid();
    let stopped = Stopped::new(daemon);
    let address = SocketAddrUnix::new(world.home.join("pinfold.sock")).unwrap();
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Connections that were given up stay in the queue.
    loop {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {}
            Err(rustix::io::Errno::AGAIN) => break,
            Err(errno) => panic!("{errno}"),
        }
    }
    is_mute(&world.within(LIMIT, &["ls"]), daemon);
    drop(stopped);
    world.ok(&["ls"]);
}

#[test]
fn a_daemon_gives_signs_of_life_while_it_looks_at_what_is_there() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    world.guarded("b", &[], "exec sleep 100000");
    let shim = number(&world.show("a")["shim_pid"]);
    world.kill_daemon();
    let stopped = Stopped::new(shim);
    let mut up = world.command(&["up"]).spawn().unwrap();
    let ping = || {
        let connected = std::os::unix::net::UnixStream::connect(world.home.join("pinfold.sock"));
        connected.ok().map(|_| http::ask(&world, "GET", "/v1/ping", ""))
    };
    let mut seen = Vec::new();
    until("it says how far it has come", || ping().is_some_and(|(_, object)| object["starting"]["of"] == 2));
    while let Some((200, object)) = ping() {
        if object["starting"].is_null() {
            break;
        }
        seen.push(object["starting"]["seen"].as_u64().unwrap());
    }
    assert!(seen.is_sorted() && seen.iter().all(|seen| *seen < 2), "{seen:?}");
    drop(stopped);
    assert!(up.ended().success());
    until("the shim is found", || world.show("a")["shim_pid"] == shim);
}

/// A folder that a daemon in the wrong directory would make.
struct Misplaced(PathBuf);

impl Drop for Misplaced {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_relative_home_is_the_callers() {
    let mut world = World::new();
    let name = format!("pinfold-test-{}", std::process::id());
    world.home = world.path(&name);
    let misplaced = Misplaced(Path::new("/").join(&name));
    let relative = |words: &[&str]| {
        let mut command = world.command(words);
        finish_within(command.env("PINFOLD_HOME", &name).env("PINFOLD_LOCKS", "locks"), LIMIT.mul_f64(2.5))
    };
    let made = relative(&["--json", "new", "a", "--dir", ".", "--", "sleep", "100000"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(!misplaced.0.exists() && world.home.join("pinfold.db").exists());
    let status = relative(&["--json", "status"]).json();
    assert_eq!(status["home"], world.home.to_str().unwrap());
    // The lock folder is the same too, from here and for the daemon.
    assert_eq!(world.run(&["lock", ".", "--", "true"]).code, 75);
    assert_eq!(relative(&["down"]).code, 0);
}

/// The path of the real binary, for scripts.
fn pinfold(world: &World) -> String {
    world.binary.display().to_string()
}

#[test]
fn an_agent_speaks_to_the_daemon_of_its_own_home() {
    let (user, world) = (User::new(), World::new());
    // The usual home has a session with the same name.
    user.ok(None, &["new", "x", "--mode", "on-demand", "--", "cat"]);
    user.ok(None, &["stop", "x"]);
    world.ok(&["new", "x", "--mode", "on-demand", "--", "cat"]);
    world.ok(&["stop", "x"]);
    let script = format!("unset XDG_STATE_HOME XDG_RUNTIME_DIR; '{}' send x hello", pinfold(&world));
    let home = format!("HOME={}", user.world.path("user").display());
    let new = ["new", "agent", "--parent", "x", "--mode", "once", "--env", &home];
    world.ok(&[&new[..], &["--", "sh", "-c", &script]].concat());
    world.wait("agent", "stopped");
    let count = |inbox: Value| inbox.as_array().unwrap().len();
    assert_eq!((count(world.json(&["inbox", "x"])), count(user.json(None, &["inbox", "x"]))), (1, 0));
}

#[test]
fn an_agent_is_told_its_home_and_the_lock_folder_that_was_named() {
    let world = World::new();
    world.ok(&[
        "new",
        "a",
        "--mode",
        "once",
        "--",
        "sh",
        "-c",
        "echo home=$PINFOLD_HOME; echo locks=$PINFOLD_LOCKS",
    ]);
    assert_eq!(world.printed("a", "home="), world.home.to_str().unwrap());
    assert_eq!(world.printed("a", "locks="), world.path("locks").to_str().unwrap());
}

/// Runs a script inside a run, on command; returns what it wrote to its file.
fn inside(world: &World, script: &str, before: impl FnOnce()) -> String {
    let script = format!(
        "until test -e \"$ROOT/go\"; do sleep 0.05; done; {{ {script}; }} >\"$ROOT/said\" 2>&1; \
         mv \"$ROOT/said\" \"$ROOT/result\"; exec sleep 100000"
    );
    world.guarded("agent", &[], &script);
    before();
    std::fs::write(world.path("go"), "").unwrap();
    until("the script has run", || world.path("result").exists());
    std::fs::read_to_string(world.path("result")).unwrap()
}

#[test]
fn a_session_neither_replaces_nor_ends_the_daemon_of_its_own_home() {
    let world = World::new();
    let bin = pinfold(&world);
    let (home, locks) = (world.home.display(), world.path("locks"));
    let script = format!(
        "export PINFOLD_HOME='{home}' PINFOLD_LOCKS='{}'; \
         '{bin}' up --replace; echo replace=$?; '{bin}' down; echo down=$?; \
         env -i PINFOLD_HOME=\"$PINFOLD_HOME\" PINFOLD_LOCKS=\"$PINFOLD_LOCKS\" '{bin}' down --keep; echo bare=$?; \
         '{bin}' --home \"$ROOT/other\" down; echo other=$?",
        locks.display()
    );
    world.ok(&["up"]);
    let daemon = world.daemon_pid();
    let said = inside(&world, &script, || ());
    for line in ["replace=77", "down=77", "bare=77", "other=0"] {
        assert!(said.lines().any(|said| said == line), "{line} is not in {said}");
    }
    assert_eq!(world.daemon_pid(), daemon);
}

#[test]
fn a_daemon_never_starts_inside_a_run_whatever_the_environment_says() {
    let world = World::new();
    let (bin, home, locks) = (pinfold(&world), world.home.display(), world.path("locks"));
    let bare = format!("env -i PINFOLD_HOME='{home}' PINFOLD_LOCKS='{}' setsid '{bin}'", locks.display());
    let script = format!("{bare} ls; echo ls=$?; {bare} up --foreground; echo foreground=$?");
    let said = inside(&world, &script, || world.kill_daemon());
    for line in ["ls=69", "foreground=69"] {
        assert!(said.lines().any(|said| said == line), "{line} is not in {said}");
    }
    assert!(said.contains("inside a run no daemon is started"), "{said}");
    assert_eq!(world.run(&["status"]).code, 69);
}

#[test]
fn down_without_a_daemon_says_which_agents_run_on() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    world.guarded("b", &[], "exec sleep 100000");
    world.guarded("over", &["--mode", "once"], "exit 0");
    world.wait("over", "stopped");
    let (a, b) = (world.pid("a"), world.pid("b"));
    world.kill_daemon();
    assert_eq!(world.run(&["down", "--keep"]).code, 0, "to leave them running is what was asked for");
    let told = world.run(&["down"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("2 agents run on without a daemon"), "{told:?}");
    assert!(
        told.stderr.contains(&format!("a (pid {a})")) && told.stderr.contains("`pinfold up`"),
        "{told:?}"
    );
    let told = world.run(&["--json", "down"]).json();
    let expected = serde_json::json!([{ "name": "a", "pid": a }, { "name": "b", "pid": b }]);
    assert_eq!((&told["was_up"], &told["running"]), (&false.into(), &expected));
    assert_eq!(told["error"]["kind"], "failed");
    assert!(lives(a) && lives(b));
    world.ok(&["up"]);
    world.ok(&["down"]);
    assert_eq!(world.json(&["down"])["running"], serde_json::json!([]));
    world.assert_no_members();
}

#[test]
fn a_terminal_is_joined_after_the_folder_of_its_socket_was_removed() {
    let world = World::new();
    world.ok(&["new", "t", "--pty", "--", "sh", "-c", "echo here I am; exec cat"]);
    world.printed("t", "here I am");
    std::fs::remove_dir_all(world.home.join("shims")).unwrap();
    let tty = Tty::start(world.command(&["attach", "t"]), 24, 80);
    tty.shows("here I am");
    assert!(finish(&mut world.command(&["ls"])).code == 0);
}

#[test]
fn a_shim_whose_socket_was_removed_while_no_daemon_lived_is_found_again() {
    let world = World::new();
    world.ok(&["new", "t", "--pty", "--", "sh", "-c", "echo here I am; exec cat"]);
    world.printed("t", "here I am");
    let before = world.show("t");
    std::fs::remove_dir_all(world.home.join("shims")).unwrap();
    world.kill_daemon();
    assert_eq!(world.within(LIMIT, &["up"]).code, 0);
    until("the shim is found", || world.show("t")["shim_pid"] == before["shim_pid"]);
    assert_eq!(world.show("t")["pid"], before["pid"]);
}
