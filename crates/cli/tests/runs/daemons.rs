//! One daemon per home, however many processes try to start it.

use crate::processes::lives;
use crate::world::{Ends, World, finish, number};
use serde_json::Value;
use std::io::Write;

/// The priority of a process's first thread, as the kernel has it.
fn niceness(pid: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(16).unwrap().parse().unwrap()
}

fn started(world: &World) -> Vec<Value> {
    world.events().into_iter().filter(|event| event["kind"] == "daemon_started").collect()
}

#[test]
fn twenty_clients_race_to_start_the_daemon_and_all_succeed() {
    let world = World::new();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..20).map(|_| scope.spawn(|| world.run(&["--json", "ls"]))).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    for answer in &answers {
        assert_eq!((answer.code, answer.stdout.trim()), (0, "[]"), "{answer:?}");
    }
    assert_eq!(started(&world).len(), 1);
}

#[test]
fn up_twice_is_one_daemon_and_a_second_in_the_foreground_is_refused() {
    let world = World::new();
    world.ok(&["up"]);
    let pid = world.daemon_pid();
    world.ok(&["up"]);
    assert_eq!(world.daemon_pid(), pid);
    let second = world.run(&["--json", "up", "--foreground"]);
    assert_eq!((second.code, &second.json()["error"]["kind"]), (75, &"busy".into()), "{second:?}");
    assert_eq!(world.daemon_pid(), pid);
    assert_eq!(started(&world).len(), 1);
}

#[test]
fn down_stops_every_agent_and_starts_none_and_is_nothing_when_it_is_down() {
    let world = World::new();
    assert_eq!(world.ok(&["down"]).stdout, "");
    for n in 0..5 {
        world.guarded(&format!("s{n}"), &["--stop-grace", "1s"], "exec sleep 100000");
    }
    // A session that crashes as fast as it may, so that a start is always under way.
    world.guarded("crash", &[], "exit 1");
    world.ok(&["down"]);
    world.assert_no_members();
    assert_eq!(world.run(&["status"]).code, 69);
    world.ok(&["down"]);
    world.assert_no_members();
    world.ok(&["up"]);
    for n in 0..5 {
        world.wait(&format!("s{n}"), "running");
    }
    let events = world.check_history();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "daemon_stopped").count(), 1);
    let stopped = kinds.iter().position(|kind| *kind == "daemon_stopped").unwrap();
    assert_eq!(kinds[stopped + 1], "daemon_started");
}

#[test]
fn down_may_leave_the_agents_and_up_adopts_them() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    let before = world.show("a");
    world.ok(&["down", "--keep"]);
    assert_eq!(world.run(&["status"]).code, 69);
    assert!(lives(number(&before["pid"])));
    world.ok(&["up"]);
    world.wait("a", "running");
    let after = world.show("a");
    for same in ["pid", "shim_pid", "run", "fence", "started_at"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    assert_eq!(world.events_of("a", "run_started").len(), 1);
    world.check_history();
}

#[test]
fn a_new_binary_takes_over_and_disturbs_nobody() {
    let world = World::new();
    world.guarded("a", &[], "exec sleep 100000");
    let (before, daemon) = (world.show("a"), world.daemon_pid());
    world.ok(&["up", "--replace"]);
    assert_ne!(world.daemon_pid(), daemon);
    world.wait("a", "running");
    let after = world.show("a");
    for same in ["pid", "shim_pid", "run", "fence"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    assert!(world.events_of("a", "run_exited").is_empty());
    world.check_history();
}

/// Requests without a pause, until this is dropped: the daemon always has something to do.
struct Questions(Vec<std::os::unix::net::UnixStream>);

impl Questions {
    fn to(world: &World) -> Questions {
        let ask = |_| {
            let stream = crate::http::connect(world);
            let (mut asks, mut hears) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
            let request = b"GET /v1/status HTTP/1.1\r\nhost: pinfold\r\n\r\n".repeat(100);
            std::thread::spawn(move || while asks.write_all(&request).is_ok() {});
            std::thread::spawn(move || std::io::copy(&mut hears, &mut std::io::sink()));
            stream
        };
        Questions((0..4).map(ask).collect())
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        for stream in &self.0 {
            _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Programs that take all they can of a processor, until this is dropped.
struct Crowd(Vec<std::process::Child>);

impl Crowd {
    fn on(processor: &str) -> Crowd {
        let words = ["-c", processor, "sh", "-c", "while :; do :; done"];
        let one = || std::process::Command::new("taskset").args(words).spawn().unwrap();
        Crowd((0..6).map(|_| one()).collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for one in &mut self.0 {
            _ = one.kill();
            _ = one.wait();
        }
    }
}

#[test]
fn a_daemon_that_is_kept_from_running_goes_ahead_where_it_may_and_nothing_inherits_that() {
    let world = World::new();
    world.ok(&["up"]);
    let (daemon, ours) = (world.daemon_pid(), niceness(std::process::id()));
    assert_eq!(niceness(daemon), ours);
    let tried = std::process::Command::new("nice").args(["-n", "-20", "nice"]).output().unwrap();
    let ahead = if ours == 0 && tried.stdout == b"-20\n" { -20 } else { ours };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t")).unwrap();
    let processor = allowed.split([',', '-']).next().unwrap();
    let pin = ["-p", "-c", processor, &daemon.to_string()];
    assert!(std::process::Command::new("taskset").args(pin).output().unwrap().status.success());
    let (crowd, questions) = (Crowd::on(processor), Questions::to(&world));
    world.until("it is ahead", || (niceness(daemon) == ahead).then_some(()));
    drop(questions);
    let session = world.json(&["new", "a", "--", "sleep", "100000"]);
    assert_eq!((niceness(number(&session["shim_pid"])), niceness(number(&session["pid"]))), (ours, ours));
    drop(crowd);
}

#[test]
fn a_daemon_in_the_foreground_goes_down_with_sigterm() {
    let world = World::new();
    let mut child = world.command(&["up", "--foreground"]).spawn().unwrap();
    let daemon = crate::world::held(child.id());
    // A verb that came before the daemon answers would start another one.
    let until = std::time::Instant::now() + crate::processes::PATIENCE;
    while world.run(&["status"]).code != 0 {
        assert!(std::time::Instant::now() < until, "it does not answer");
    }
    world.guarded("a", &[], "exec sleep 100000");
    assert_eq!(world.daemon_pid(), daemon.pid);
    daemon.signal(rustix::process::Signal::TERM);
    assert!(child.ended().success());
    world.assert_no_members();
    assert_eq!(world.run(&["status"]).code, 69);
}

#[test]
fn without_the_small_shim_beside_it_pinfold_is_its_own_shim() {
    let world = World::new();
    let alone = world.path("pinfold");
    crate::program::copy(&world.binary, &alone);
    let mut command = std::process::Command::new(&alone);
    command.args(["--json", "new", "a", "--", "sleep", "100000"]).current_dir(&world.root);
    command
        .env("PINFOLD_HOME", &world.home)
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("XDG_STATE_HOME", world.path("state"));
    let answer = finish(&mut command);
    assert_eq!(answer.code, 0, "{answer:?}");
    let session = answer.json();
    let shim = std::fs::read_link(format!("/proc/{}/exe", session["shim_pid"])).unwrap();
    assert_eq!(shim, alone);
    world.kill_daemon();
    world.ok(&["up"]);
    world.wait("a", "running");
    assert_eq!(world.show("a")["pid"], session["pid"]);
    world.ok(&["stop", "a"]);
    world.assert_no_members();
}

#[test]
fn an_agent_does_not_start_a_daemon_that_would_end_with_it() {
    let world = World::new();
    let answer = finish(world.command(&["ls"]).env("PINFOLD_RUN", "01RUN"));
    assert_eq!(answer.code, 69, "{answer:?}");
    assert!(answer.stderr.contains("inside a run no daemon is started"), "{answer:?}");
    assert_eq!(world.run(&["status"]).code, 69, "nobody started one");
}
