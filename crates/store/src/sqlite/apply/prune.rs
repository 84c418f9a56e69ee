//! Forgetting: a bounded number of rows for a bounded time in each step, with a note of what went.

use super::{Applied, Applier, insert_made};
use crate::commit_error::CommitError;
use crate::rows::Message;
use crate::sqlite::errors::commit_error;
use crate::sqlite::old::{COMPLETE_FROM, UNTOLD, parse_untold};
use crate::sqlite::parse::message_row;
use crate::sqlite::reader::MESSAGE;
use crate::sqlite::statements;
use crate::sqlite::sums::KEYS;
use crate::step::{KEPT_EVENTS, KEPT_RUNS, Old, PRUNE_AT_ONCE, Prune, Reason, Tally, Untold};
use crate::ulid::{SessionId, Ulid};
use pinfold_core::Wall;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, ffi, params};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Rows between two looks at the clock.
const PIECE: u64 = 16;
/// Pages between two looks at the clock.
const PAGES: u64 = 16;

/// This many of the newest runs stay, and all runs of an archived session.
const OLD_RUNS: &str = "SELECT number, ended_at FROM runs WHERE session = ?1
     AND number < (SELECT number FROM runs WHERE session = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
     AND (SELECT archived_at IS NULL FROM sessions WHERE id = ?1)
     ORDER BY number LIMIT ?3";
const OLD_MESSAGE: &str = "WHERE id = ?1 AND session = ?2 AND state = 'done' AND done_at < ?3
     AND (SELECT archived_at IS NULL FROM sessions WHERE id = ?2)";
const SET: &str = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";

/// The part of an event that matters here. Where a damaged one cannot be read, it counts as old and as
/// belonging to no session.
struct Passed {
    seq: u64,
    at: i64,
    session: Option<String>,
}

/// The time that a step has.
struct Clock {
    begun: Instant,
    within: Duration,
}

impl Clock {
    fn new(within: Duration) -> Clock {
        Clock { begun: Instant::now(), within }
    }

    fn is_up(&self) -> bool {
        self.begun.elapsed() >= self.within
    }
}

impl Applier<'_> {
    pub(super) fn prune(&mut self, prune: &Prune) -> Applied {
        let mut tally = match &prune.old {
            Old::Events { keep } => self.prune_events(prune, *keep),
            Old::Runs { session } => self.prune_runs(prune, *session),
            Old::Messages { session, ids } => self.prune_messages(prune, *session, ids),
        }?;
        tally.by_size = prune.reason == Reason::Size && tally.rows() > 0;
        self.count(tally)
    }

    /// Notes that some of what was forgotten was reported.
    pub(super) fn told(&mut self, at: Wall, told: Tally) -> Applied {
        let Untold { tally, .. } = self.untold()?;
        self.put_untold(Untold { tally: tally.minus(told), told_at: Some(at) })
    }

    /// Moves pages from the end of the file into its free space.
    pub(super) fn give_back(&mut self, within: Duration) -> Applied {
        let clock = Clock::new(within);
        let failed = |source| commit_error(self.path, source);
        let number = |pragma: &str| {
            self.conn.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0)).map_err(failed)
        };
        if number("auto_vacuum")? == 0 {
            return Ok(());
        }
        let mut left = number("freelist_count")?;
        while left > 0 {
            self.conn.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES})")).map_err(failed)?;
            let now = number("freelist_count")?;
            if now >= left || clock.is_up() {
                self.committed.more = now > 0 && now < left;
                return Ok(());
            }
            left = now;
        }
        Ok(())
    }

    /// Passes over events, beginning at the number from which on all exist, and moves that number on. Below
    /// it never more than [`KEPT_EVENTS`] of a session stay, counted from the last of its events that was passed.
    fn prune_events(&mut self, prune: &Prune, keep: NonZeroU64) -> Result<Tally, CommitError> {
        let clock = Clock::new(prune.within);
        let Some(from) = self.complete_from()? else { return Ok(Tally::default()) };
        let kept_from = self.next_seq()?.saturating_sub(keep.get());
        let end = kept_from.min(from + PRUNE_AT_ONCE.max(prune.at_least));
        let (mut at, mut floors, mut events) = (from, BTreeMap::new(), 0);
        let mut more = end < kept_from;
        while at < end {
            let piece = self.events_between(at, end.min(at + PIECE))?;
            let young = piece.iter().find(|event| event.at >= prune.before.0).map(|event| event.seq);
            let old = piece.iter().filter(|event| young.is_none_or(|young| event.seq < young));
            for event in old {
                events += self.pass(event, at, &mut floors)?;
            }
            at = young.unwrap_or(end.min(at + PIECE));
            if young.is_some() || (clock.is_up() && at - from >= prune.at_least) {
                more = young.is_none() && at < kept_from;
                break;
            }
        }
        self.committed.more |= more;
        if at > from {
            self.execute(SET, params!["kept_from", at])?;
        }
        Ok(Tally { events, ..Tally::default() })
    }

    /// Passes over one event; returns how many were removed.
    fn pass(
        &self,
        event: &Passed,
        passed: u64,
        floors: &mut BTreeMap<String, u64>,
    ) -> Result<u64, CommitError> {
        let mut gone = 0;
        let floor = match &event.session {
            None => u64::MAX,
            Some(session) => match floors.get(session) {
                Some(floor) => *floor,
                None => {
                    let floor = self.floor_of(session)?;
                    gone += self.forget_of(session, floor.min(passed))?;
                    floors.insert(session.clone(), floor);
                    floor
                }
            },
        };
        if event.seq < floor {
            gone += self.execute("DELETE FROM events WHERE seq = ?1", [event.seq])? as u64;
        }
        Ok(gone)
    }

    /// Returns the oldest event of a session that stays; for a session that no longer exists none does.
    fn floor_of(&self, session: &str) -> Result<u64, CommitError> {
        let there: Option<i64> = self.one("SELECT 1 FROM sessions WHERE id = ?1", [session])?;
        if there.is_none() {
            return Ok(i64::MAX.cast_unsigned());
        }
        let sql = "SELECT seq FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2";
        Ok(self.one(sql, params![session, KEPT_EVENTS - 1])?.unwrap_or(0))
    }

    fn forget_of(&self, session: &str, before: u64) -> Result<u64, CommitError> {
        let sql = "DELETE FROM events WHERE session = ?1 AND seq < ?2";
        Ok(self.execute(sql, params![session, before])? as u64)
    }

    /// Forgets events that stayed only because of this session, if they were passed over.
    pub(super) fn forget_kept_events(&mut self, id: SessionId) -> Applied {
        let Some(passed) = self.complete_from()? else { return Ok(()) };
        let events = self.forget_of(&id.to_string(), passed)?;
        self.count(Tally { events, ..Tally::default() })
    }

    fn events_between(&self, from: u64, end: u64) -> Result<Vec<Passed>, CommitError> {
        let sql = "SELECT seq, at, session FROM events WHERE seq >= ?1 AND seq < ?2 ORDER BY seq";
        let read = |row: &Row<'_>| {
            let session = row.get_ref(2)?.as_str_or_null().ok().flatten().map(str::to_owned);
            let at = row.get_ref(1)?.as_i64().unwrap_or(i64::MIN);
            Ok(Passed { seq: row.get(0)?, at, session })
        };
        self.rows(sql, params![from, end], read)
    }

    fn prune_runs(&mut self, prune: &Prune, session: SessionId) -> Result<Tally, CommitError> {
        let (clock, of) = (Clock::new(prune.within), session.to_string());
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?));
        let runs = self.rows(OLD_RUNS, params![of, KEPT_RUNS - 1, PRUNE_AT_ONCE + 1], read)?;
        let old = runs.iter().take_while(|(_, ended)| ended.is_some_and(|ended| ended < prune.before.0));
        let old: Vec<i64> = old.map(|(number, _)| *number).collect();
        let mut gone = 0;
        for number in old.iter().take(PRUNE_AT_ONCE as usize) {
            let sql = "DELETE FROM runs WHERE session = ?1 AND number = ?2";
            gone += self.execute(sql, params![of, number])?;
            if (gone as u64).is_multiple_of(PIECE) && clock.is_up() {
                break;
            }
        }
        self.committed.more |= gone < old.len();
        Ok(Tally { runs: gone as u64, ..Tally::default() })
    }

    fn prune_messages(
        &mut self,
        prune: &Prune,
        session: SessionId,
        ids: &[Ulid],
    ) -> Result<Tally, CommitError> {
        let clock = Clock::new(prune.within);
        let (mut gone, mut seen) = (0, 0);
        for id in ids.iter().take(PRUNE_AT_ONCE as usize) {
            seen += 1;
            gone += u64::from(self.prune_message(session, *id, prune.before)?);
            // A text may be long, so the clock is read after each.
            if clock.is_up() {
                break;
            }
        }
        self.committed.more |= seen < ids.len();
        Ok(Tally { messages: gone, ..Tally::default() })
    }

    /// Forgets a message, and keeps its key. A damaged one stays, and is named where it is read.
    fn prune_message(&mut self, session: SessionId, id: Ulid, before: Wall) -> Result<bool, CommitError> {
        let (of, message) = (session.to_string(), id.to_string());
        let sql = format!("{} {OLD_MESSAGE}", *MESSAGE);
        let found = self.conn.prepare_cached(&sql).and_then(|mut statement| {
            statement.query_row(params![message, of, before.0], message_row).optional()
        });
        let found = found.map_err(|source| commit_error(self.path, source))?;
        let Some(found) = found.filter(|found| found.damage.is_none()) else { return Ok(false) };
        self.spend_key(&of, &message, &found)?;
        let file: Option<i64> =
            self.one("SELECT 1 FROM answers WHERE message = ?1 AND content IS NOT NULL", [&message])?;
        self.gone.extend(file.map(|_| (session, id)));
        Ok(self.execute("DELETE FROM messages WHERE id = ?1", [message])? > 0)
    }

    fn spend_key(&self, session: &str, id: &str, message: &Message) -> Applied {
        let Some(key) = &message.key else { return Ok(()) };
        let done_at = message.done_at.map_or(ValueRef::Null, |at| ValueRef::Integer(at.0));
        let row = [
            session.into(),
            key.as_str().into(),
            id.into(),
            ValueRef::Integer(message.enqueued_at.0),
            done_at,
        ];
        let spent = insert_made(self.conn, &statements::SPEND_KEY, &KEYS, &row);
        spent.map(drop).map_err(|source| commit_error(self.path, source))
    }

    /// Refuses a key that stands for a forgotten message: it is as taken as any other.
    pub(super) fn refuse_spent(&self, session: &str, key: &str) -> Applied {
        let sql = "SELECT 1 FROM keys WHERE session = ?1 AND key = ?2";
        let spent: Option<i64> = self.one(sql, [session, key])?;
        let Some(_) = spent else { return Ok(()) };
        let cause = ffi::Error::new(ffi::SQLITE_CONSTRAINT_UNIQUE);
        let text = "the key stands for a message that was forgotten".to_owned();
        Err(commit_error(self.path, rusqlite::Error::SqliteFailure(cause, Some(text))))
    }

    fn complete_from(&self) -> Result<Option<u64>, CommitError> {
        Ok(self.one::<Option<u64>>(COMPLETE_FROM, [])?.flatten())
    }

    fn untold(&self) -> Result<Untold, CommitError> {
        Ok(self.one::<String>(UNTOLD, [])?.map(|text| parse_untold(&text)).unwrap_or_default())
    }

    fn put_untold(&self, untold: Untold) -> Applied {
        let text = serde_json::to_string(&untold).expect("counts are plain data");
        self.execute(SET, params!["pruned", text]).map(drop)
    }

    /// Notes what a step forgot, together with the step.
    fn count(&mut self, tally: Tally) -> Applied {
        if tally.rows() == 0 {
            return Ok(());
        }
        self.committed.pruned = self.committed.pruned.plus(tally);
        let untold = self.untold()?;
        self.put_untold(Untold { tally: untold.tally.plus(tally), ..untold })
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, CommitError> {
        let rows = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_map(params, read)?.collect::<Result<Vec<_>, _>>());
        rows.map_err(|source| commit_error(self.path, source))
    }
}
