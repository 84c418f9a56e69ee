//! Stopped peers and processes that cannot be ended: every verb returns, and says which one it waits for.

mod attached;
mod chains;
mod nursery;
mod plain;
mod shims;
mod survivors;

use crate::processes::{self, PATIENCE};
use crate::world::{World, held, number};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The longest time for a verb that returns: the grace, two seconds, and plenty for a busy machine.
const LIMIT: Duration = crate::processes::PATIENCE;

/// Creates a session with a short stop grace; returns its shim's pid.
fn session(world: &World, name: &str, options: &[&str], script: &str) -> u32 {
    let words = [&["new", name, "--stop-grace", "300ms"], options, &["--", "sh", "-c", script]].concat();
    world.ok(&words);
    number(&world.show(name)["shim_pid"])
}

/// Keeps a process stopped until this is dropped.
struct Stopped(u32);

impl Stopped {
    fn new(pid: u32) -> Stopped {
        held(pid).signal(Signal::STOP);
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        until("a stopped process", || {
            state().rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T"))
        });
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(process) = processes::Held::open(self.0) {
            process.signal(Signal::CONT);
        }
    }
}

/// Waits until a condition holds.
fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The sentence of `why`.
fn why(world: &World, name: &str) -> String {
    world.show(name)["why"].as_str().unwrap().to_owned()
}
