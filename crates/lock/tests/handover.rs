//! Handing locks on: to children and over sockets, and what happens to those that were not given them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod limit;
mod rights;

use crate::rights::needs;
use pinfold_lock::Trace;
use pinfold_lock::{
    AcquireError, AdoptError, BusyBecause, Folder, Guard, LockDescription, ReleaseMark, Request, Resource,
    RunName, Survivors, process,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Place {
    _limit: limit::Limit,
    _temp: tempfile::TempDir,
    folder: Folder,
    root: PathBuf,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    Place {
        folder: Folder::open(root.join("locks")).unwrap(),
        root,
        _temp: temp,
        _limit: limit::Limit::of_test(),
    }
}

fn key() -> Resource {
    Resource::Key("k".into())
}

fn run(name: &str, survivors: Survivors) -> Request {
    Request { run: Some(RunName::new(name).unwrap()), survivors, ..Request::default() }
}

fn take(folder: &Folder) -> Guard {
    folder.try_acquire(&key(), &Request::default()).unwrap()
}

fn busy(folder: &Folder, resource: &Resource) -> BusyBecause {
    match folder.try_acquire(resource, &run("asker", Survivors::Ignore)) {
        Err(AcquireError::Busy(busy)) => busy.because,
        other => panic!("{other:?}"),
    }
}

/// Starts a child that lives until its stdin is closed, and whose exec is over.
fn cat(command: &mut Command) -> Child {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut echo = [0];
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut echo).unwrap();
    child
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_child_that_was_given_the_lock_holds_it_and_one_that_was_not_does_not() {
    let place = place();
    let mut guard = take(&place.folder);
    let stranger = cat(&mut Command::new("cat"));
    let mut command = Command::new("cat");
    guard.hand_over(&mut command);
    let given = cat(&mut command);
    let receipt = guard.release();
    assert_eq!((receipt.mark, receipt.trouble), (ReleaseMark::Unreleased, None));
    assert_eq!(busy(&place.folder, &key()), BusyBecause::Held);
    end(given);
    drop(take(&place.folder));
    end(stranger);
}

#[test]
fn a_command_whose_guard_is_gone_does_not_start() {
    let place = place();
    let mut guard = take(&place.folder);
    let mut command = Command::new("true");
    guard.hand_over(&mut command);
    drop(guard);
    assert!(command.spawn().is_err());
}

#[test]
fn concurrent_spawns_never_inherit_each_others_locks() {
    let place = place();
    let path = place.folder.path().to_str().unwrap().to_owned();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (folder, path) = (place.folder.clone(), path.clone());
            scope.spawn(move || {
                let resource = Resource::Key(format!("k{number}"));
                for round in 0..25 {
                    // A sibling that is being spawned has a copy until its exec, however slow the machine.
                    let mut guard = folder.acquire(&resource, &Request::default()).unwrap();
                    let mut command = Command::new("sh");
                    command.args(["-c", "ls -l /proc/$$/fd"]);
                    let expected = usize::from(round % 2 == 0);
                    if expected == 1 {
                        guard.hand_over(&mut command);
                    }
                    let output = command.stderr(Stdio::null()).output().unwrap();
                    let text = String::from_utf8_lossy(&output.stdout).into_owned();
                    assert_eq!(text.matches(&format!("{path}/k-")).count(), expected, "{text}");
                    guard.mark_released().unwrap();
                }
            });
        }
    });
}

fn duplicates(guard: &Guard) -> (LockDescription, Vec<OwnedFd>) {
    let (description, descriptors) = guard.lend().unwrap();
    (description, descriptors.iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect())
}

#[test]
fn a_lent_lock_is_held_by_both_until_each_lets_go() {
    let place = place();
    std::fs::create_dir(place.root.join("x")).unwrap();
    for resource in [key(), Resource::Directory(place.root.join("x"))] {
        let sender = place.folder.try_acquire(&resource, &run("r1", Survivors::Ignore)).unwrap();
        let old = sender.fence();
        let (description, descriptors) = duplicates(&sender);
        let text = serde_json::to_string(&description).unwrap();
        let mut receiver =
            Guard::adopt(&place.folder, serde_json::from_str(&text).unwrap(), descriptors).unwrap();
        assert_eq!(receiver.directory().is_some(), matches!(resource, Resource::Directory(_)));
        assert_eq!(sender.surrender().mark, ReleaseMark::Unreleased);
        assert_eq!(busy(&place.folder, &resource), BusyBecause::Held);
        let new = receiver.new_fence(&run("r2", Survivors::End)).unwrap();
        assert!(new > old);
        receiver.mark_released().unwrap();
        assert_eq!(receiver.release().mark, ReleaseMark::Released);
        assert!(place.folder.try_acquire(&resource, &Request::default()).unwrap().fence() > new);
    }
}

#[test]
fn descriptors_that_hold_nothing_make_no_guard() {
    let place = place();
    let guard = take(&place.folder);
    let (description, _) = duplicates(&guard);
    let file = std::fs::read_dir(place.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.to_str().unwrap().contains("/k-")).unwrap();
    let unlocked = OwnedFd::from(std::fs::File::open(file).unwrap());
    let refused = Guard::adopt(&place.folder, description.clone(), vec![unlocked]);
    assert!(matches!(refused, Err(AdoptError::NotHeld { .. })), "{refused:?}");
    assert!(matches!(Guard::adopt(&place.folder, description, Vec::new()), Err(AdoptError::Count { .. })));
}

#[test]
fn a_child_makes_a_guard_of_what_it_inherited() {
    let place = place();
    let mut guard = take(&place.folder);
    let (description, _) = duplicates(&guard);
    let mut command = role("role_adopts", &place.root);
    command.env("DESCRIPTION", serde_json::to_string(&description).unwrap());
    guard.hand_over(&mut command);
    let fence = guard.fence();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = Held::of(child);
    drop(guard);
    assert!(child.line().parse::<u64>().unwrap() > fence.0);
    assert_eq!(busy(&place.folder, &key()), BusyBecause::Held);
    child.kill();
    drop(place.folder.acquire(&key(), &Request::default()).unwrap());
}

#[test]
fn a_killed_holder_frees_the_lock_within_10_ms() {
    let place = place();
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let mut holder = Held::of(
            role("role_holds", &place.root).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap(),
        );
        holder.line();
        let folder = place.folder.clone();
        let (ready, waits) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn(move || {
            ready.send(()).unwrap();
            let guard = folder.acquire(&key(), &Request::default()).unwrap();
            let got = Instant::now();
            drop(guard);
            got
        });
        waits.recv().unwrap();
        let killed = Instant::now();
        holder.child.kill().unwrap();
        best = best.min(waiter.join().unwrap().saturating_duration_since(killed));
        holder.child.wait().unwrap();
    }
    // The best of ten: a loaded machine may schedule any process late, but the lock is not what is late.
    assert!(best < Duration::from_millis(10), "{best:?}");
}

#[test]
fn a_surviving_run_is_ended_or_waited_for_before_the_next_grant() {
    for survivors in [Survivors::Wait, Survivors::End] {
        let place = place();
        let guard = place.folder.try_acquire(&key(), &run("marked", survivors)).unwrap();
        let child = cat(Command::new("cat").env(pinfold_lock::RUN_VARIABLE, "marked"));
        assert_eq!(guard.surrender().mark, ReleaseMark::Unreleased);
        if survivors == Survivors::Wait {
            assert_eq!(busy(&place.folder, &key()), BusyBecause::Survivor(Trace::Marker));
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| place.folder.acquire(&key(), &Request::default()).is_ok());
                end(child);
                assert!(waiter.join().unwrap());
            });
        } else {
            drop(take(&place.folder));
            assert!(!child.wait_with_output().unwrap().status.success(), "it was killed");
        }
    }
}

/// A daemon takes a lock for a living run and dies before the run's shim has it: the next daemon takes it again.
#[test]
fn a_run_that_lives_is_no_survivor_to_itself() {
    let place = place();
    let guard = place.folder.try_acquire(&key(), &run("lives", Survivors::End)).unwrap();
    let child = cat(Command::new("cat").env(pinfold_lock::RUN_VARIABLE, "lives"));
    assert_eq!(guard.surrender().mark, ReleaseMark::Unreleased);
    let again = place.folder.try_acquire(&key(), &run("lives", Survivors::End)).unwrap();
    assert_eq!(again.surrender().mark, ReleaseMark::Unreleased);
    assert_eq!(stranger_status(child), Some(0), "it ended by itself");
}

#[test]
fn the_first_process_of_a_run_is_ended_by_its_identity() {
    let place = place();
    let mut guard = place.folder.try_acquire(&key(), &run("r", Survivors::End)).unwrap();
    let child = cat(&mut Command::new("cat"));
    let agent = Some(process::identify(child.id()).unwrap());
    guard.new_fence(&Request { agent, ..run("r", Survivors::End) }).unwrap();
    let _ = guard.surrender();
    drop(take(&place.folder));
    assert!(!child.wait_with_output().unwrap().status.success(), "it was killed");
}

#[test]
fn a_recycled_pid_in_the_record_is_left_alone() {
    let place = place();
    let mut guard = place.folder.try_acquire(&key(), &run("r", Survivors::End)).unwrap();
    let stranger = cat(&mut Command::new("cat"));
    let mut agent = process::identify(stranger.id()).unwrap();
    agent.start_ticks -= 1;
    agent.pidfs = agent.pidfs.map(|inode| inode - 1);
    guard.new_fence(&Request { agent: Some(agent), ..run("r", Survivors::End) }).unwrap();
    let _ = guard.surrender();
    drop(take(&place.folder));
    assert_eq!(stranger_status(stranger), Some(0));
}

fn stranger_status(mut child: Child) -> Option<i32> {
    drop(child.stdin.take());
    child.wait().unwrap().code()
}

#[test]
fn a_survivor_below_or_above_keeps_overlapping_directories_away() {
    let place = place();
    std::fs::create_dir_all(place.root.join("a/b/c")).unwrap();
    std::fs::create_dir_all(place.root.join("a/d")).unwrap();
    let directory = |path: &str| Resource::Directory(place.root.join(path));
    let guard = place.folder.try_acquire(&directory("a/b"), &run("below", Survivors::Wait)).unwrap();
    let child = cat(Command::new("cat").env(pinfold_lock::RUN_VARIABLE, "below"));
    let _ = guard.surrender();
    for overlapping in ["a", "a/b", "a/b/c"] {
        let because = busy(&place.folder, &directory(overlapping));
        assert_eq!(because, BusyBecause::Survivor(Trace::Marker), "{overlapping}");
    }
    drop(place.folder.try_acquire(&directory("a/d"), &Request::default()).unwrap());
    end(child);
    for free in ["a/b/c", "a", "a/b"] {
        drop(place.folder.try_acquire(&directory(free), &Request::default()).unwrap());
    }
}

#[test]
fn the_members_of_a_control_group_are_ended_before_the_next_grant() {
    needs!(Groups);
    let cgroup = make_cgroup().expect("a writable control group (v2)");
    let place = place();
    let request = Request { cgroup: Some(cgroup.clone()), ..run("grouped", Survivors::End) };
    let guard = place.folder.try_acquire(&key(), &request).unwrap();
    let fence = guard.fence();
    let child = cat(&mut Command::new("cat"));
    std::fs::write(cgroup.join("cgroup.procs"), child.id().to_string()).unwrap();
    let _ = guard.surrender();
    let (sender, told) = std::sync::mpsc::channel();
    place.folder.tell_of_ended(move |ended| sender.send(ended.clone()).unwrap());
    drop(take(&place.folder));
    let told = told.try_recv().expect("whom a grant ends is told");
    assert_eq!((told.processes[0].pid, told.fence), (child.id(), fence));
    assert_eq!(told.run.map(|run| run.to_string()).as_deref(), Some("grouped"));
    assert!(!child.wait_with_output().unwrap().status.success(), "it was killed");
    assert!(!cgroup.exists(), "a group that nobody is left to remove stays");
}

#[test]
fn a_control_group_that_is_not_named_after_its_holder_proves_nothing() {
    needs!(Groups);
    let cgroup = make_named_cgroup("old").expect("a writable control group (v2)");
    let place = place();
    let request = Request { cgroup: Some(cgroup.clone()), ..run("forgotten", Survivors::End) };
    let guard = place.folder.try_acquire(&key(), &request).unwrap();
    // Another run is in a group of the same path by now; the run itself left one process outside of it.
    let innocent = cat(&mut Command::new("cat"));
    std::fs::write(cgroup.join("cgroup.procs"), innocent.id().to_string()).unwrap();
    let left = cat(Command::new("cat").env(pinfold_lock::RUN_VARIABLE, "forgotten"));
    let _ = guard.surrender();
    drop(take(&place.folder));
    assert!(!left.wait_with_output().unwrap().status.success(), "what carries the run is ended");
    end(innocent);
    std::fs::remove_dir(cgroup).unwrap();
}

#[test]
fn the_locks_of_a_run_that_is_gone_are_marked_and_those_of_a_living_one_are_not() {
    let place = place();
    let other = Resource::Key("other".into());
    let gone = place.folder.try_acquire(&key(), &run("gone", Survivors::Wait)).unwrap();
    let alive = place.folder.try_acquire(&other, &run("alive", Survivors::Wait)).unwrap();
    let child = cat(Command::new("cat").env(pinfold_lock::RUN_VARIABLE, "alive"));
    let (_, _) = (gone.surrender(), alive.surrender());
    for name in ["gone", "alive"] {
        place.folder.mark_ended(&RunName::new(name).unwrap()).unwrap();
    }
    // A process that carries a run that was marked as over is not one of its survivors.
    let late = cat(Command::new("cat").env(pinfold_lock::RUN_VARIABLE, "gone"));
    drop(take(&place.folder));
    assert_eq!(busy(&place.folder, &other), BusyBecause::Survivor(Trace::Marker));
    end(late);
    end(child);
}

/// Creates a version 2 control group below our own, wherever it is mounted.
fn make_cgroup() -> Option<PathBuf> {
    let own = pinfold_lock::process::own().ok()?;
    make_named_cgroup(&pinfold_lock::process::word(&own))
}

fn make_named_cgroup(end: &str) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?.to_owned();
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let path = Path::new(&mount).join(own).join(format!("pinfold-test-{}-{end}", std::process::id()));
    std::fs::create_dir(&path).ok()?;
    Some(path)
}

#[test]
fn a_zombie_leader_with_living_threads_still_holds_its_lock() {
    let place = place();
    let mut holder = Held::of(
        role("role_leaves_its_threads", &place.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    holder.line();
    let identity = process::identify(holder.child.id()).unwrap();
    // The leader has ended when /proc calls it a zombie, which is right after its message.
    let until = Instant::now() + Duration::from_secs(240);
    while !std::fs::read_to_string(format!("/proc/{}/stat", holder.child.id())).unwrap().contains(") Z ") {
        assert!(Instant::now() < until, "the leader does not end");
        std::thread::yield_now();
    }
    assert_eq!(process::verdict(Some(&identity)).word(), "alive");
    let Err(AcquireError::Busy(busy)) = place.folder.try_acquire(&key(), &Request::default()) else {
        panic!("it was granted")
    };
    assert_eq!(busy.lock.unwrap().holder.identity.unwrap().pid, holder.child.id());
    holder.kill();
    drop(place.folder.acquire(&key(), &Request::default()).unwrap());
}

// ---- this program in another role ------------------------------------------------------------------------

struct Held {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Held {
    fn of(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// Returns the next line from a role; what the test harness prints has no `> `.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the role ended");
            if let Some((_, said)) = line.split_once("> ") {
                return said.trim().to_owned();
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn role(name: &str, root: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env("ROOT", root);
    command
}

/// Returns `None` if this program was not given a role.
fn role_folder() -> Option<Folder> {
    let root = std::env::var_os("ROOT")?;
    Some(Folder::open(Path::new(&root).join("locks")).unwrap())
}

fn wait_for_the_end() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[test]
#[ignore = "a role of another test"]
fn role_holds() {
    let Some(folder) = role_folder() else { return };
    let _guard = take(&folder);
    println!("> held");
    wait_for_the_end();
}

#[test]
#[ignore = "a role of another test"]
fn role_adopts() {
    let Some(folder) = role_folder() else { return };
    let description = serde_json::from_str(&std::env::var("DESCRIPTION").unwrap()).unwrap();
    let mut guard = Guard::adopt_inherited(&folder, description).unwrap();
    println!("> {}", guard.new_fence(&Request::default()).unwrap());
    wait_for_the_end();
}

#[test]
#[ignore = "a role of another test"]
fn role_leaves_its_threads() {
    // The test harness runs this in a thread; the leader waits for it and is ended here by itself.
    let Some(folder) = role_folder() else { return };
    let guard = take(&folder);
    println!("> held");
    end_the_leader();
    wait_for_the_end();
    drop(guard);
}

/// Makes the leader thread leave while this one stays.
fn end_the_leader() {
    extern "C" fn leave(_: libc::c_int) {
        // SAFETY: the system call ends the calling thread only; no destructor runs and no lock is held by a
        // thread that waits in the test harness for another one.
        unsafe {
            libc::syscall(libc::SYS_exit, 0);
        }
    }
    // SAFETY: installs a handler that makes one system call, and sends its signal to the leader.
    unsafe {
        libc::signal(libc::SIGUSR1, leave as *const () as libc::sighandler_t);
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::getpid(), libc::SIGUSR1);
    }
}
