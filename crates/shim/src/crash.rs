//! Crash points: named steps at which a test makes the shim abort. Release builds have none.
//!
//! The variable names the point; or, as `trace:PATH`, a file to which the name of every passed point is
//! added. With `stop:POINT@PATH`, the first process to pass the point creates the file and stops there until
//! it is continued or killed, so that a test can kill any process it wants. `POINT#3` is the third time that
//! a process passes the point.

/// The variable that names the point at which to abort.
pub const VARIABLE: &str = "PINFOLD_CRASH_AT";

/// Every point, in the order in which a run passes them.
pub const POINTS: &[&str] = &[
    "keep.received",
    "keep.adopted",
    "keep.listening",
    "start.unforked",
    "child.unbound",
    "start.forked",
    "start.fenced",
    "start.released",
    "start.confirmed",
    "end.empty",
    "record.unwritten",
    "record.written",
    "end.reported",
    "spare.waits",
    "leave.unmarked",
    "leave.marked",
    "leave.closed",
];

/// Points that only some runs pass: the daemon is slow to store an end, an agent ends a turn, a run has a
/// tape.
pub const SOMETIMES: &[&str] = &[
    "record.synced",
    "turn.stored",
    "tape.appended",
    "tape.synced",
    "say.taped",
    "say.half",
    "say.written",
    "hold.acked",
    "guest.forked",
    "guest.released",
    "guest.confirmed",
    "guest.ended",
];

/// Aborts if the environment says so.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    if is_wanted(name) {
        std::process::abort();
    }
}

/// For a child that was just forked: aborts the shim, and the child goes on without it.
#[cfg(debug_assertions)]
pub fn parent_dies_at(name: &str, parent: rustix::process::Pid) {
    if is_wanted(name) {
        let _ = rustix::process::kill_process(parent, rustix::process::Signal::ABORT);
        while rustix::process::getppid() == Some(parent) {
            std::thread::yield_now();
        }
    }
}

/// Returns whether to abort at this point; if all points are traced, records it.
#[cfg(debug_assertions)]
fn is_wanted(name: &str) -> bool {
    debug_assert!(POINTS.contains(&name) || SOMETIMES.contains(&name), "{name} is not listed");
    let Some(wanted) = std::env::var(VARIABLE).ok() else { return false };
    if let Some(trace) = wanted.strip_prefix("trace:") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(trace);
        let _ =
            file.and_then(|mut file| std::io::Write::write_all(&mut file, format!("{name}\n").as_bytes()));
    }
    stop_at(&wanted, name);
    wanted == name
}

/// Stops at a point, if no other process has.
#[cfg(debug_assertions)]
pub fn stop_at(wanted: &str, name: &str) {
    let Some((point, file)) = wanted.strip_prefix("stop:").and_then(|rest| rest.split_once('@')) else {
        return;
    };
    static PASSED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let (point, time) = point.split_once('#').unwrap_or((point, "1"));
    if point != name {
        return;
    }
    let is_time = (PASSED.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1).to_string() == time;
    let first = || std::fs::OpenOptions::new().write(true).create_new(true).open(file).is_ok();
    if is_time && first() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_: &str) {}

/// Does nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn parent_dies_at(_: &str, _: rustix::process::Pid) {}
