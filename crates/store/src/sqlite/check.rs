//! A full check: all pages, all indexes, all checksums. It runs beside the work and is paced.

use super::files::log_of;
use super::parse::{
    account_row, answer_row, cursor_row, event_row, files_row, key_row, message_row, run_row, session_row,
    usage_row,
};
use super::reader::SqliteReader;
use super::sums::{
    ACCOUNTS, ANSWERS, CURSORS, EVENTS, FILES, KEYS, MESSAGES, RUNS, SESSIONS, SummedTable, TABLES, USAGE,
};
use crate::pace::CheckPace;
use crate::query::ReadError;
use crate::rows::{Loaded, RowDamage};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A person with more faults than this has enough to do.
const MOST_FINDINGS: usize = 20;
/// How many rows are read before the log may move on.
const PAGE: usize = 500;
/// A check hurries if it keeps a log of this length from being reused.
const LONG_LOG: u64 = 64 << 20;
/// The longest that ending a check has to wait.
const NAP: Duration = Duration::from_millis(20);
/// Steps of SQLite between two looks at the clock.
const STEPS: i32 = 1000;

/// A check under way.
struct Walker {
    pace: CheckPace,
    log: PathBuf,
    worked: Duration,
}

impl Walker {
    fn new(pace: &CheckPace, reader: &SqliteReader) -> Walker {
        Walker { pace: pace.clone(), log: log_of(reader.path()), worked: worked() }
    }

    /// Rests if it is time to; returns whether to stop.
    fn step(&mut self) -> bool {
        let since = worked().saturating_sub(self.worked);
        if self.pace.rest > 0 && since > Duration::from_millis(2) {
            let long = std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LONG_LOG);
            let until = Instant::now() + since * self.pace.rest;
            while !long && Instant::now() < until && !self.pace.is_over() {
                std::thread::sleep(NAP);
            }
            self.worked = worked();
        }
        self.pace.is_over()
    }
}

/// Returns the CPU time of this thread.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl SqliteReader {
    /// Checks every page, index and checksum, and returns what is wrong; nothing if all is well.
    ///
    /// # Errors
    /// The file cannot be read at all.
    pub(super) fn check(&mut self, pace: &CheckPace) -> Result<Vec<String>, ReadError> {
        let mut findings = Vec::new();
        for table in TABLES {
            if !self.has(table)? {
                continue;
            }
            self.check_pages(table, pace, &mut findings)?;
            self.check_rows(table, pace, &mut findings)?;
        }
        findings.truncate(MOST_FINDINGS);
        Ok(findings)
    }

    /// Whether a table exists: a file of an earlier version may not have it.
    fn has(&self, table: &SummedTable) -> Result<bool, ReadError> {
        let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        Ok(self.one(sql, [table.name], |_| Ok(()))?.is_some())
    }

    fn check_pages(
        &mut self,
        table: &SummedTable,
        pace: &CheckPace,
        findings: &mut Vec<String>,
    ) -> Result<(), ReadError> {
        let mut walker = Walker::new(pace, self);
        let conn = self.conn_mut();
        let paced = conn.progress_handler(STEPS, Some(move || walker.step()));
        let told = paced.and_then(|()| {
            let mut check = conn.prepare(&format!("PRAGMA integrity_check({})", table.name))?;
            check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()
        });
        drop(conn.progress_handler(STEPS, None::<fn() -> bool>));
        match told {
            Ok(told) => {
                let wrong = told.into_iter().filter(|line| line != "ok");
                findings.extend(wrong.map(|line| format!("table {} is damaged: {line}", table.name)));
                Ok(())
            }
            Err(_) if pace.is_over() => Ok(()),
            Err(source) => Err(self.error(source)),
        }
    }

    fn check_rows(
        &self,
        table: &SummedTable,
        pace: &CheckPace,
        findings: &mut Vec<String>,
    ) -> Result<(), ReadError> {
        let (keys, damage_in) = how(table);
        let mut walker = Walker::new(pace, self);
        let mut after: Vec<Value> = keys.iter().map(|_| Value::Null).collect();
        loop {
            let rows = self.page(table, keys, &after, damage_in)?;
            findings.extend(rows.iter().filter_map(|(damage, _)| damage.as_ref()).map(|damage| {
                let what = table.name.trim_end_matches('s');
                format!("{what} {} is damaged: {}", damage.id, damage.problem)
            }));
            let Some((_, last)) = rows.into_iter().next_back() else { return Ok(()) };
            after = last;
            if walker.step() || findings.len() >= MOST_FINDINGS {
                return Ok(());
            }
        }
    }

    /// Returns the rows after a key: what is wrong with each, and its own key.
    fn page(
        &self,
        table: &SummedTable,
        keys: &[&str],
        after: &[Value],
        damage_in: DamageIn,
    ) -> Result<Vec<Judged>, ReadError> {
        let (names, all) = (keys.join(", "), table.all());
        let begun = !after.iter().all(|key| *key == Value::Null);
        let marks = if keys.len() == 2 { "(?1, ?2)" } else { "(?1)" };
        let behind = if begun { format!("WHERE ({names}) > {marks}") } else { String::new() };
        let sql = format!("SELECT {all}, {names} FROM {} {behind} ORDER BY {names} LIMIT {PAGE}", table.name);
        let first = table.columns.len() + 1 + table.besides.len();
        let parse = |row: &Row<'_>| {
            let key = (first..first + keys.len()).map(|column| row.get(column)).collect::<Result<_, _>>()?;
            Ok((damage_in(row)?, key))
        };
        let after: &[Value] = if begun { after } else { &[] };
        let rows = self.conn().prepare_cached(&sql).and_then(|mut statement| {
            statement.query_map(params_from_iter(after), parse)?.collect::<Result<Vec<_>, _>>()
        });
        rows.map_err(|source| self.error(source))
    }
}

/// What is wrong with a row, and its key.
type Judged = (Option<RowDamage>, Vec<Value>);
type DamageIn = fn(&Row<'_>) -> rusqlite::Result<Option<RowDamage>>;

/// Returns the key by which a table is walked, and how its rows are judged.
fn how(table: &SummedTable) -> (&'static [&'static str], DamageIn) {
    if table.name == SESSIONS.name {
        return (&["rowid"], |row| {
            Ok(match session_row(row)? {
                Loaded::Whole(_) => None,
                Loaded::Damaged(damaged) => Some(RowDamage { id: damaged.id, problem: damaged.problem }),
            })
        });
    }
    if table.name == MESSAGES.name {
        return (&["rowid"], |row| Ok(message_row(row)?.damage));
    }
    if table.name == RUNS.name {
        return (&["session", "number"], |row| Ok(run_row(row)?.damage));
    }
    if table.name == KEYS.name {
        return (&["session", "key"], |row| Ok(key_row(row)?.err()));
    }
    if table.name == CURSORS.name {
        return (&["session"], |row| Ok(cursor_row(row)?.err()));
    }
    if table.name == ANSWERS.name {
        return (&["message"], |row| Ok(answer_row(row)?.err()));
    }
    if table.name == USAGE.name {
        return (&["number"], |row| Ok(usage_row(row)?.err()));
    }
    if table.name == ACCOUNTS.name {
        return (&["name"], |row| Ok(account_row(row)?.err()));
    }
    if table.name == FILES.name {
        return (&["message"], |row| Ok(files_row(row)?.err()));
    }
    debug_assert_eq!(table.name, EVENTS.name, "there are ten tables");
    (&["seq"], |row| Ok(event_row(row)?.damage))
}
