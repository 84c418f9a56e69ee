//! Crash points: named steps at which a test makes the daemon abort. Release builds have none.
//!
//! The variable names a point; with `#3` appended, it means the third time that the point is passed. As
//! `stop:POINT@PATH` it stops there, as shims do.

/// The variable that names the point at which to abort; shims have points of their own.
pub use pinfold_shim::crash::VARIABLE;

/// Every point, in the order in which a session first passes them.
pub const POINTS: &[&str] = &[
    "daemon.alone",
    "daemon.unannounced",
    "daemon.announced",
    "daemon.loaded",
    "daemon.listening",
    "given.kept",
    "create.folder",
    "commit.before",
    "commit.after",
    "reserve.before",
    "reserve.after",
    "spawn.before",
    "spawn.handed",
    "spawn.greeted",
    "spawn.surrendered",
    "spawn.went",
    "spawn.told",
    "shim.attached",
    "report.before",
    "report.after",
    "respawn.before",
    "respawn.told",
    "acknowledge.before",
    "acknowledge.told",
    "given.outdated",
    "stop.before",
    "stop.told",
    "release.before",
    "release.told",
    "observed.before",
    "observed.after",
    "down.before",
    "down.unsaid",
    "down.said",
    "given.removed",
];

/// The points that only sessions with a tape pass.
pub const OF_TAPES: &[&str] = &["say.before", "say.sent", "fold.heard", "heard.sent", "hold.sent"];

/// The points that only an answer too long for its row passes.
pub const OF_ANSWERS: &[&str] = &["answer.written", "answer.named"];

/// The points that only sessions with a guest pass.
pub const OF_GUESTS: &[&str] = &["guest.before", "guest.sent"];

/// The points that only `apply` passes.
pub const OF_DECLARATIONS: &[&str] = &["declare.folders", "declare.gathered", "declare.committed"];

/// Aborts if the environment says so.
#[cfg(debug_assertions)]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let listed = [POINTS, OF_TAPES, OF_ANSWERS, OF_GUESTS, OF_DECLARATIONS]
        .iter()
        .any(|points| points.contains(&name));
    debug_assert!(listed, "{name} is not listed");
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok()?;
        if text.starts_with("stop:") {
            return Some((text, 0));
        }
        let (name, time) = text.split_once('#').unwrap_or((&text, "1"));
        Some((name.to_owned(), time.parse().ok()?))
    });
    if let Some((wanted, _)) = wanted {
        pinfold_shim::crash::stop_at(wanted, name);
    }
    if let Some((wanted, time)) = wanted
        && wanted == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *time
    {
        eprintln!("aborts at {name}#{time}");
        std::process::abort();
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn point(_: &str) {}
