//! What happens when the disk is full or descriptors run out.

use crate::processes::{PATIENCE, lives, open_files};
use crate::rights::needs;
use crate::world::{World, finish, held, number};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How many files a lock folder keeps open.
const KEPT_OPEN: usize = 8;

/// A small file system of its own.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path, size: &str) -> Disk {
        std::fs::create_dir(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .status();
        assert!(mounted.is_ok_and(|status| status.success()), "a tmpfs is mounted");
        Disk(at.to_owned())
    }

    /// Uses all the free space.
    fn fill(&self) {
        let mut file =
            std::fs::OpenOptions::new().create(true).append(true).open(self.0.join("filler")).unwrap();
        for size in [1 << 20, 4096, 1] {
            let bytes = vec![1; size];
            while std::io::Write::write(&mut file, &bytes).is_ok_and(|written| written > 0) {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        crate::processes::end_around(&self.0);
        _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_loses_no_agent_and_is_recovered_from() {
    needs!(Mount);
    let mut world = World::new();
    let disk = Disk::mount(&world.path("disk"), "6m");
    world.home = disk.0.join("home");
    for n in 0..4 {
        world.guarded(&format!("s{n}"), &[], "exec sleep 100000");
    }
    let before: Vec<u32> = (0..4).map(|n| world.pid(&format!("s{n}"))).collect();
    disk.fill();
    // If the database's log has room left, it is accepted, and waits.
    let refused = world.run(&["new", "more", "--", "sleep", "100000"]);
    let said = refused.stderr.to_lowercase();
    assert!(said.contains("full") || said.contains("space"), "{refused:?}");
    // An agent ends while nothing can be written.
    let ended = held(before[3]);
    ended.signal(rustix::process::Signal::SEGV);
    ended.wait();
    let down = world.run(&["ls"]);
    assert!(
        down.code == 0 || down.stderr.to_lowercase().contains("full") || down.stderr.contains("space"),
        "{down:?}"
    );
    assert!(before[..3].iter().all(|pid| lives(*pid)));
    disk.make_room();
    world.ok(&["up"]);
    // Its end is recorded when there is room again.
    let ended = |event: &serde_json::Value| event["session"] == "s3" && event["kind"] == "run_exited";
    world.watch().event("the end of s3", ended);
    for n in 0..4 {
        world.wait(&format!("s{n}"), "running");
    }
    for (n, pid) in before[..3].iter().enumerate() {
        assert_eq!(world.pid(&format!("s{n}")), *pid, "s{n}");
    }
    let exits = world.events_of("s3", "run_exited");
    assert_eq!((exits.len(), &exits[0]["signal"]), (1, &11.into()), "{exits:?}");
    let taken = refused.code == 0;
    assert_eq!(
        world.sessions().contains_key("more"),
        taken,
        "what was refused is not there, what was taken is"
    );
    if !taken {
        world.ok(&["new", "more", "--", "sleep", "100000"]);
    }
    world.wait("more", "running");
    world.check_history();
    world.ok(&["down"]);
    world.assert_no_members();
}

#[test]
fn an_agent_goes_on_when_its_log_cannot_be_written() {
    needs!(Mount);
    let mut world = World::new();
    let disk = Disk::mount(&world.path("disk"), "6m");
    world.home = disk.0.join("home");
    let script = "until test -e \"$ROOT/full\"; do sleep 0.02; done; head -c 300000 /dev/zero | tr '\\0' x; echo; \
                  touch \"$ROOT/said\"; until test -e \"$ROOT/room\"; do sleep 0.02; done; echo; echo back; exec sleep 100000";
    world.guarded("a", &[], script);
    let pid = world.pid("a");
    disk.fill();
    std::fs::write(world.path("full"), "").unwrap();
    wait_for(&world.path("said"));
    assert!(lives(pid));
    disk.make_room();
    std::fs::write(world.path("room"), "").unwrap();
    world.ok(&["up"]);
    world.printed("a", "back");
    assert_eq!(world.pid("a"), pid);
    let lines = world.json(&["logs", "a", "-n", "100"]);
    let missing = |line: &serde_json::Value| {
        line["text"].as_str().is_some_and(|text| text.contains("are missing here"))
    };
    assert!(lines.as_array().unwrap().iter().any(missing), "it does not say what was lost: {lines}");
    world.check_history();
    drop(world);
}

/// Waits until a file exists; the kernel reports what is created beside it.
fn wait_for(file: &Path) {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let watch = inotify::init(CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, file.parent().unwrap(), WatchFlags::CREATE).unwrap();
    let mut buffer = [0_u8; 4096];
    while !file.exists() {
        let timeout = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
        let mut fds = [rustix::event::PollFd::new(&watch, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(1), "{} does not come", file.display());
        rustix::io::read(&watch, &mut buffer).unwrap();
    }
}

#[test]
fn without_descriptors_starts_are_refused_nothing_leaks_and_later_they_succeed() {
    let world = World::new();
    let mut up = Command::new("sh");
    up.args(["-c", "ulimit -n 64; exec \"$0\" up", env!("CARGO_BIN_EXE_pinfold")]);
    up.env("PINFOLD_HOME", &world.home)
        .env("PINFOLD_LOCKS", world.path("locks"))
        .env("XDG_STATE_HOME", world.path("state"))
        .env("ROOT", &world.root);
    assert_eq!(finish(&mut up).code, 0);
    let daemon = world.daemon_pid();
    world.guarded("first", &[], "exec sleep 100000");
    world.ok(&["stop", "first"]);
    let idle = open_files(daemon).len();
    let mut refused = Vec::new();
    let mut made = 0;
    while refused.len() < 3 {
        let name = format!("s{made}");
        let session = world.guarded(&name, &[], "exec sleep 100000");
        if session["state"] != "running" {
            refused.push(name);
        }
        made += 1;
        assert!(made < 64, "descriptors do not run out");
    }
    let last = refused.last().unwrap();
    assert!(world.events_of(last, "run_started").is_empty());
    assert!(world.events_of(last, "run_exited").is_empty(), "what never ran has no end");
    let reasons = world.events_of(last, "start_failed");
    assert!(!reasons.is_empty() && reasons.iter().all(|refused| refused["errno"] == 24), "{reasons:?}");
    // Enough for all that were refused.
    let running = (0..made).map(|n| format!("s{n}")).filter(|name| !refused.contains(name));
    for name in running.take(10) {
        world.ok(&["stop", &name]);
    }
    for name in &refused {
        world.wait(name, "running");
    }
    assert_eq!(world.daemon_pid(), daemon, "it did not end of it");
    for n in 0..made {
        world.ok(&["stop", &format!("s{n}")]);
    }
    let patience = Instant::now() + PATIENCE;
    // A lock folder keeps a few of its files open, without their locks; waiting threads are told, and end.
    while open_files(daemon).len() > idle + KEPT_OPEN {
        assert!(Instant::now() < patience, "{idle} before, now {:?}", open_files(daemon));
        std::thread::sleep(Duration::from_millis(20));
    }
    world.check_history();
    world.assert_no_members();
    assert!(number(&world.json(&["status"])["pid"]) == daemon);
}

#[test]
fn a_daemon_that_could_open_too_few_files_does_not_start() {
    let world = World::new();
    let up = |limit: u32| {
        let mut up = world.command(&["up"]);
        let script = format!("ulimit -n {limit}; exec \"$0\" up");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_pinfold")]);
        for (name, value) in up.env("ROOT", &world.root).get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        finish(&mut shell)
    };
    for limit in [32, 63] {
        let refused = up(limit);
        assert_eq!(refused.code, 78, "{refused:?}");
        let reason = format!("the limit of open files is {limit}, and a daemon needs 64");
        assert!(refused.stderr.contains(&reason) && refused.stderr.contains("ulimit -n"), "{refused:?}");
    }
    assert_eq!(up(64).code, 0);
    // Connections that say nothing make room for those that ask.
    let socket = world.json(&["status"])["socket"].as_str().unwrap().to_owned();
    let silent: Vec<_> = (0..100).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    for _ in 0..3 {
        world.ok(&["ls"]);
    }
    let turned_out = world.daemon_log().matches("a connection could not be taken").count();
    assert!(turned_out <= 5, "each refusal is logged: {turned_out}");
    drop(silent);
}
