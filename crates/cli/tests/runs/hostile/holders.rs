//! Only the actual holder of a lock is ended: records of runs that are long gone end no process, `unlock
//! --kill` ends the holder it saw, and every kill is recorded.

use crate::processes::{self, PATIENCE, lives};
use crate::rights::needs;
use crate::world::{Ends, World, held, number};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Long enough for every verb here on the slowest machine.
const SOON: Duration = crate::processes::PATIENCE;

/// Waits until a condition holds.
fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills the shim of a session together with its agent, as the kernel does when memory is short.
fn lose_shim(world: &World, name: &str) {
    let session = world.show(name);
    let (agent, shim) = (number(&session["pid"]), number(&session["shim_pid"]));
    processes::kill(shim);
    processes::kill(agent);
    until("the next run", || {
        let now = world.show(name);
        now["state"] == "running" && now["pid"] != agent
    });
}

fn folder(world: &World, name: &str) -> String {
    let path = world.path(name);
    std::fs::create_dir_all(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Makes restarts immediate, however short a run was.
fn hasty(world: &World) {
    std::fs::create_dir_all(&world.home).unwrap();
    std::fs::write(world.home.join("config.toml"), "[policy]\nbackoff_initial = \"10ms\"\n").unwrap();
}

#[test]
fn the_record_of_a_directory_that_a_session_has_left_ends_nobody() {
    let world = World::new();
    hasty(&world);
    let (a, b) = (folder(&world, "a"), folder(&world, "b"));
    world.json(&["new", "s", "--dir", &a, "--", "sleep", "100000"]);
    world.ok(&["set", "s", "--dir", &b]);
    lose_shim(&world, "s");
    let before = world.pid("s");
    let taken = world.within(SOON, &["lock", &a, "--", "true"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(lives(before), "the run in b was ended by a lock on a");
    assert_eq!(world.pid("s"), before);
    assert_eq!(world.events_of("s", "run_exited").len(), 1, "only the lost one");
}

#[test]
fn a_directory_made_anew_with_the_inode_of_a_lost_runs_one_ends_nobody() {
    let world = World::new();
    hasty(&world);
    let a = folder(&world, "a");
    let inode = |path: &str| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
    let old = inode(&a);
    world.json(&["new", "s", "--dir", &a, "--", "sleep", "100000"]);
    let session = world.show("s");
    // The directory is removed and made again between the loss of the shim and the next run.
    world.kill_daemon();
    processes::kill(number(&session["shim_pid"]));
    processes::kill(number(&session["pid"]));
    std::fs::remove_dir(&a).unwrap();
    // On most file systems, a directory made now gets the same inode number.
    let twin = (0..200).map(|n| folder(&world, &format!("twin{n}"))).find(|path| inode(path) == old);
    folder(&world, "a");
    world.ok(&["up"]);
    until("the next run", || world.show("s")["state"] == "running");
    let before = world.pid("s");
    let Some(twin) = twin else {
        // This file system does not reuse numbers, so nothing can be mistaken.
        return assert_ne!(inode(&a), old);
    };
    let taken = world.within(SOON, &["lock", &twin, "--", "true"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(lives(before), "the run in another directory was ended");
    assert_eq!(world.pid("s"), before);
}

#[test]
fn a_record_of_the_version_before_ends_only_what_carries_its_run() {
    needs!(Groups);
    use pinfold_lock::{Folder, Request, Resource, RunName, Survivors};
    let world = World::new();
    world.json(&["new", "s", "--", "sleep", "100000"]);
    let agent = world.pid("s");
    let group = processes::group(agent).expect("its own control group");
    let innocent = held(agent);
    // As the version before wrote it: a group named after the session alone, and a run that is over. By now
    // another run of the session has a group of that name.
    let name = group.file_name().unwrap().to_str().unwrap().to_owned();
    let old_name: String = name.chars().take("pinfold-".len() + 16).collect();
    let old = group.with_file_name(old_name);
    let moved = old != group;
    if moved {
        std::fs::create_dir(&old).unwrap();
        std::fs::write(old.join("cgroup.procs"), agent.to_string()).unwrap();
    }
    let locks = Folder::open(world.path("locks")).unwrap();
    let a = Resource::Directory(folder(&world, "a").into());
    let request = Request {
        session: Some("s".into()),
        run: RunName::new("01ARZ3NDEKTSV4RRFFQ69G5FAV").ok(),
        cgroup: Some(old.clone()),
        survivors: Survivors::End,
        ..Request::default()
    };
    let left = Command::new("sleep").arg("100000").env("PINFOLD_RUN", "01ARZ3NDEKTSV4RRFFQ69G5FAV").spawn();
    let mut left = left.unwrap();
    let _receipt = locks.try_acquire(&a, &request).unwrap().surrender();
    let taken = world.within(SOON, &["lock", &a.to_string(), "--", "true"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(!innocent.ends_within(Duration::from_millis(100)), "the run of today was ended");
    assert!(held_or_gone(&mut left), "what carries the run of the record is its survivor");
    if moved {
        std::fs::write(group.join("cgroup.procs"), agent.to_string()).unwrap();
        std::fs::remove_dir(&old).unwrap();
    }
}

fn held_or_gone(child: &mut Child) -> bool {
    let ended = held(child.id()).ends_within(SOON);
    _ = child.kill();
    _ = child.wait();
    ended
}

/// Uses a session: the child of a killed `pinfold lock` lives on, and a grant ends it only where its run is known.
#[test]
fn survivors_that_a_grant_ends_are_an_event() {
    let world = World::new();
    hasty(&world);
    let a = folder(&world, "a");
    let script = "setsid sleep 100000 & echo child $!; exec sleep 100000";
    world.json(&["new", "s", "--dir", &a, "--", "sh", "-c", script]);
    let child: u32 = world.printed("s", "child ").parse().unwrap();
    let (run, shim) = (world.show("s")["run"].clone(), number(&world.show("s")["shim_pid"]));
    world.kill_daemon();
    processes::kill(shim);
    assert!(lives(child), "nobody is there to end it yet");
    let taken = world.within(SOON, &["lock", &a, "--", "true"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(!lives(child));
    world.ok(&["up"]);
    let event = world.watch().event("what the lock ended", |event| event["kind"] == "ended_by_lock");
    assert_eq!((&event["run"], &event["resource"]), (&run, &Value::from(a.as_str())));
    assert!(event["fence"].as_u64().is_some() && event["by"]["pid"].as_u64().is_some(), "{event}");
    let pids: Vec<u32> = event["ended"].as_array().unwrap().iter().map(|one| number(&one["pid"])).collect();
    assert!(pids.contains(&child), "{event}");
}

#[test]
fn survivors_that_the_daemon_ends_are_an_event() {
    let world = World::new();
    hasty(&world);
    let script = "setsid sleep 100000 & echo child $!; exec sleep 100000";
    world.json(&["new", "s", "--", "sh", "-c", script]);
    let child: u32 = world.printed("s", "child ").parse().unwrap();
    let watch = world.watch();
    processes::kill(number(&world.show("s")["shim_pid"]));
    let event = watch.event("the kill", |event| event["kind"] == "ended_by_lock");
    assert_eq!((&event["session"], &event["resource"]), (&"s".into(), &"session:s".into()));
    until("its end", || !lives(child));
}

struct Waiter(Child);

impl Waiter {
    fn start(world: &World, words: &[&str]) -> Waiter {
        Waiter(world.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(own) = processes::Held::open(self.0.id()) {
            processes::children(own.pid).into_iter().for_each(processes::kill);
            own.kill();
        }
        _ = self.0.wait();
    }
}

fn holder(world: &World, resource: &str) -> Option<u32> {
    let locks = world.json(&["locks"]);
    let lock = locks.as_array().unwrap().iter().find(|lock| lock["resource"] == resource)?.clone();
    lock["holder"]["pid"].as_u64().map(|pid| pid.try_into().unwrap())
}

/// Whether a process waits in the kernel for a lock; it has a thread for that.
fn waits(pid: u32) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1)
}

#[test]
fn unlock_ends_the_holder_that_it_saw_and_nobody_who_waits() {
    let world = World::new();
    let command = ["--", "sleep", "100000"];
    let a = Waiter::start(&world, &[&["lock", "key:r"], &command[..]].concat());
    until("a holds it", || holder(&world, "key:r") == Some(a.pid()));
    let wait = ["lock", "key:r", "--wait", "5m"];
    let others = [(); 2].map(|()| Waiter::start(&world, &[&wait[..], &command[..]].concat()));
    until("b and c wait", || others.iter().all(|other| waits(other.pid())));
    let first = held(a.pid());
    let said = world.within(SOON, &["unlock", "key:r", "--kill"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(first.ends_within(SOON));
    assert!(others.iter().all(|other| lives(other.pid())), "who waited was ended too: {said:?}");
    until("one of them is granted it", || {
        holder(&world, "key:r").is_some_and(|pid| others.iter().any(|other| other.pid() == pid))
    });
    assert!(said.stdout.contains("is now held by pid "), "{said:?}");
}

#[test]
fn a_run_that_unlock_ended_is_no_crash_and_its_mode_is_said() {
    let world = World::new();
    let a = folder(&world, "a");
    world.json(&["new", "api", "--dir", &a, "--", "sleep", "100000"]);
    world.json(&["new", "twin", "--dir", &a, "--", "sleep", "100000"]);
    let (first, run) = (world.pid("api"), world.show("api")["run"].clone());
    let said = world.within(SOON, &["unlock", &a, "--kill"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!lives(first));
    assert!(said.stderr.contains("mode `always`") && said.stderr.contains("pinfold stop api"), "{said:?}");
    until("somebody runs again", || world.sessions().values().any(|session| session["state"] == "running"));
    let ends = world.events_of("api", "run_exited");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(
        (&ends[0]["run"], &ends[0]["verdict"], &ends[0]["crashes"]),
        (&run, &"clean".into(), &0.into())
    );
    assert!(ends[0]["why"].as_str().unwrap().contains("`unlock`"), "{}", ends[0]);
    assert_eq!(world.events_of("twin", "run_exited").len(), 0, "who waited was not ended");
    let told = world.events_of("api", "unlocked");
    assert_eq!((told.len(), &told[0]["run"]), (1, &run), "{told:?}");
}

#[test]
fn a_run_that_unlock_ended_while_no_daemon_looked_is_no_crash() {
    let world = World::new();
    world.json(&["new", "api", "--mode", "once", "--", "sleep", "100000"]);
    world.kill_daemon();
    let said = world.within(SOON, &["unlock", "session:api", "--kill"]);
    assert_eq!(said.code, 0, "{said:?}");
    world.ok(&["up"]);
    // The shim may still be on its way out when the daemon answers.
    world.wait("api", "stopped,failed");
    let ends = world.events_of("api", "run_exited");
    assert_eq!((ends.len(), &ends[0]["verdict"]), (1, &"clean".into()), "{ends:?}");
    assert_eq!(world.show("api")["state"], "stopped");
}

#[test]
fn unlock_inside_the_lock_is_refused_and_ends_nobody() {
    let world = World::new();
    let inner = format!("'{}' unlock key:r --kill; echo $? >code; exit 7", world.binary.display());
    let said = world.within(SOON, &["lock", "key:r", "--", "sh", "-c", &inner]);
    assert_eq!(said.code, 7, "its own holder was ended: {said:?}");
    assert_eq!(std::fs::read_to_string(world.path("code")).unwrap().trim(), "77", "{said:?}");
    assert!(said.stderr.contains("inside which this was called"), "{said:?}");
}

#[test]
fn unlock_does_not_wait_for_a_daemon_that_does_not_run() {
    let world = World::new();
    world.json(&["new", "api", "--", "sleep", "100000"]);
    let agent = held(world.pid("api"));
    let daemon = held(world.daemon_pid());
    daemon.signal(Signal::STOP);
    let mut unlock = world.command(&["unlock", "session:api", "--kill"]);
    let mut unlock = unlock.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ended = agent.ends_within(SOON);
    daemon.signal(Signal::CONT);
    unlock.ended();
    assert!(ended, "the holder lived on while the daemon was stopped");
}

#[test]
fn a_run_that_was_unlocked_from_another_home_is_no_crash() {
    let world = World::new();
    let a = folder(&world, "a");
    world.json(&["new", "api", "--mode", "once", "--dir", &a, "--", "sleep", "100000"]);
    let elsewhere = folder(&world, "elsewhere");
    let said = world.within(SOON, &["--home", &elsewhere, "unlock", &a, "--kill"]);
    assert_eq!(said.code, 0, "{said:?}");
    world.wait("api", "stopped,failed");
    let ends = world.events_of("api", "run_exited");
    assert_eq!((ends.len(), &ends[0]["verdict"]), (1, &"clean".into()), "{ends:?}");
}
