//! The statements that change rows, each with the checksum of the result.

use super::sums::{ACCOUNTS, ANSWERS, CURSORS, EVENTS, FILES, KEYS, MESSAGES, RUNS, SESSIONS, USAGE};
use std::sync::LazyLock;

type Sql = LazyLock<String>;

const OF_WAITING: &str = "id = ?1 AND session = ?2 AND state IN ('queued', 'delivered')";

pub(crate) static CREATE: Sql = LazyLock::new(|| {
    SESSIONS.insert(&[
        ("id", "?1"),
        ("name", "?2"),
        ("definition", "?3"),
        ("core", "?4"),
        ("created_at", "?5"),
        ("archived_at", "?6"),
        ("parent", "?7"),
        ("position", "(SELECT coalesce(max(position), 0) + 1 FROM sessions)"),
    ])
});
pub(crate) static UPDATE: Sql =
    LazyLock::new(|| SESSIONS.update(&[("core", "?2")], "id = ?1 AND archived_at IS ?3"));
pub(crate) static MOVE: Sql =
    LazyLock::new(|| SESSIONS.update(&[("core", "?2"), ("archived_at", "?3")], "id = ?1"));
pub(crate) static DEFINE: Sql = LazyLock::new(|| SESSIONS.update(&[("definition", "?2")], "id = ?1"));
pub(crate) static RENAME: Sql = LazyLock::new(|| SESSIONS.update(&[("name", "?2")], "id = ?1"));

/// Like [`EVENT`].
pub(crate) static QUEUE: Sql = LazyLock::new(|| MESSAGES.insert_made());
/// Where the turn of a message is, stored with what became of it, if known.
const PLACE: [(&str, &str); 3] = [
    ("run", "iif(?3 IS NULL, run, ?3)"),
    ("log_from", "iif(?3 IS NULL, log_from, ?4)"),
    ("log_to", "iif(?3 IS NULL, log_to, ?5)"),
];
pub(crate) static TAKE: Sql = LazyLock::new(|| {
    let taken = [&[("state", "'delivered'"), ("tries", "tries + 1")][..], &PLACE].concat();
    MESSAGES.update(&taken, "id = ?1 AND session = ?2 AND state = 'queued'")
});
pub(crate) static REQUEUE: Sql = LazyLock::new(|| {
    let queued = [("state", "'queued'"), ("tries", "tries - (?3 AND state = 'delivered')")];
    MESSAGES.update(&queued, OF_WAITING)
});
pub(crate) static FINISH: Sql = LazyLock::new(|| {
    let done = [&[("state", "'done'"), ("done_at", "?6"), ("answer", "?7")][..], &PLACE].concat();
    MESSAGES.update(&done, OF_WAITING)
});
pub(crate) static FAIL: Sql = LazyLock::new(|| {
    let failed = [&[("state", "'failed'"), ("done_at", "?6"), ("failure", "?7")][..], &PLACE].concat();
    MESSAGES.update(&failed, OF_WAITING)
});
/// Moves a message to the end of the queue: rows are in the order of their turns.
pub(crate) static RETRY: Sql = LazyLock::new(|| {
    let fresh = [("state", "'queued'"), ("tries", "0"), ("done_at", "NULL"), ("failure", "NULL")];
    let set = MESSAGES.set(&fresh);
    format!(
        "UPDATE messages SET {set}, rowid = (SELECT max(rowid) + 1 FROM messages)
         WHERE id = ?1 AND session = ?2 AND state = 'failed'"
    )
});
pub(crate) static RUN_DECIDED: Sql = LazyLock::new(|| {
    let new =
        RUNS.insert(&[("session", "?1"), ("number", "?2"), ("id", "?3"), ("purpose", "?4"), ("forced", "0")]);
    format!("{new} ON CONFLICT (session, number) DO NOTHING")
});
pub(crate) static RUN_STARTED: Sql = LazyLock::new(|| {
    upsert_run(
        &[
            ("session", "?1"),
            ("number", "?2"),
            ("purpose", "?3"),
            ("pid", "?4"),
            ("fence", "?5"),
            ("started_at", "?6"),
            ("forced", "0"),
        ],
        &["pid", "fence", "started_at"],
    )
});
/// A run that is known only from its exit record is taken for headless.
pub(crate) static RUN_EXITED: Sql = LazyLock::new(|| {
    upsert_run(
        &[
            ("session", "?1"),
            ("number", "?2"),
            ("purpose", "'headless'"),
            ("ended_at", "?3"),
            ("code", "?4"),
            ("signal", "?5"),
            ("verdict", "?6"),
            ("lived_ms", "?7"),
            ("forced", "?8"),
        ],
        &["ended_at", "code", "signal", "verdict", "lived_ms", "forced"],
    )
});
pub(crate) const RUNS_OPEN: &str = "SELECT number FROM runs INDEXED BY runs_open
    WHERE session = ?1 AND number <= ?2 AND ended_at IS NULL LIMIT 1";
pub(crate) static RUNS_SETTLED: Sql = LazyLock::new(|| {
    let set = RUNS.set(&[("ended_at", "?3")]);
    format!(
        "UPDATE runs INDEXED BY runs_open SET {set}
         WHERE session = ?1 AND number <= ?2 AND ended_at IS NULL"
    )
});

/// Replaces the whole row, so earlier damage no longer counts.
pub(crate) static CURSOR: Sql = LazyLock::new(|| {
    let taken = ["run", "position", "state", "sum"].map(|column| format!("{column} = excluded.{column}"));
    format!("{} ON CONFLICT (session) DO UPDATE SET {}", CURSORS.insert_made(), taken.join(", "))
});

/// All of its columns and the checksum are prepared by us: SQLite would look up the names once for each.
pub(crate) static EVENT: Sql = LazyLock::new(|| EVENTS.insert_made());

/// Like [`EVENT`].
pub(crate) static ANSWER: Sql = LazyLock::new(|| ANSWERS.insert_made());

/// Like [`EVENT`].
pub(crate) static SPENT: Sql = LazyLock::new(|| USAGE.insert_made());

/// Like [`EVENT`].
pub(crate) static FILES_SENT: Sql = LazyLock::new(|| FILES.insert_made());

/// Like [`CURSOR`].
pub(crate) static ACCOUNT: Sql = LazyLock::new(|| {
    let insert = ACCOUNTS.insert_made();
    format!("{insert} ON CONFLICT (name) DO UPDATE SET state = excluded.state, sum = excluded.sum")
});

/// Like [`EVENT`].
pub(crate) static SPEND_KEY: Sql = LazyLock::new(|| KEYS.insert_made());

/// Updates the named columns of an existing run, or inserts a new one with all values.
fn upsert_run(values: &[(&str, &str)], taken: &[&str]) -> String {
    let news: Vec<String> = taken.iter().map(|column| format!("excluded.{column}")).collect();
    let sets: Vec<(&str, &str)> = taken.iter().copied().zip(news.iter().map(String::as_str)).collect();
    let (insert, set) = (RUNS.insert(values), RUNS.set(&sets));
    format!("{insert} ON CONFLICT (session, number) DO UPDATE SET {set}")
}
