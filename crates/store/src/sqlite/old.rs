//! What is old enough to be forgotten, from where on nothing was, and how large everything is.

use super::reader::SqliteReader;
use crate::query::{ListPage, MessagePlace, Read};
use crate::rows::CompleteFrom;
use crate::step::{KEPT_RUNS, Untold};
use crate::ulid::{SessionId, Ulid};
use pinfold_core::Wall;
use rusqlite::{Row, params};

/// The number from which on no event was forgotten. If none ever was, that is the oldest.
pub(super) const COMPLETE_FROM: &str = "SELECT coalesce((SELECT value FROM meta WHERE key = 'kept_from'),
     (SELECT seq FROM events ORDER BY seq LIMIT 1))";
/// What was forgotten and not yet reported, as JSON.
pub(super) const UNTOLD: &str = "SELECT value FROM meta WHERE key = 'pruned'";

/// The first run of a session is its oldest: one look at each session is enough.
const OLD_RUNS: &str = "SELECT id FROM sessions WHERE archived_at IS NULL AND
     (SELECT ended_at FROM runs WHERE session = sessions.id ORDER BY number LIMIT 1) < ?1 AND
     EXISTS (SELECT 1 FROM runs WHERE session = sessions.id LIMIT 1 OFFSET ?2)";
const OLD_MESSAGES: &str = "SELECT id FROM sessions WHERE archived_at IS NULL AND ?2 IS NOT NULL AND
     (SELECT done_at FROM messages WHERE session = sessions.id AND state = 'done' ORDER BY rowid LIMIT 1) < ?1";

impl SqliteReader {
    /// Returns the sessions, not archived, whose oldest run ended before a moment and that have more runs
    /// than are kept.
    pub(super) fn with_old_runs(&self, before: Wall) -> Read<Vec<SessionId>> {
        self.sessions_of(OLD_RUNS, before)
    }

    /// Returns the sessions, not archived, whose oldest finished message was done before a moment.
    pub(super) fn with_old_messages(&self, before: Wall) -> Read<Vec<SessionId>> {
        self.sessions_of(OLD_MESSAGES, before)
    }

    /// Returns messages of a session after a place that were done before a moment.
    pub(super) fn old_messages(
        &self,
        session: SessionId,
        before: Wall,
        after: MessagePlace,
        most: u64,
    ) -> Read<ListPage<Ulid, MessagePlace>> {
        let sql = "SELECT rowid, id FROM messages WHERE session = ?1 AND rowid > ?2
                       AND state = 'done' AND done_at < ?3 ORDER BY rowid LIMIT ?4";
        let params = params![session.to_string(), after.0, before.0, most];
        let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        let found: Vec<(i64, String)> = self.all(sql, params, read)?;
        let full = found.len() as u64 >= most;
        let next = found.last().filter(|_| full).map(|(place, _)| MessagePlace(*place));
        Ok(ListPage { rows: found.iter().filter_map(|(_, id)| id.parse().ok()).collect(), next })
    }

    /// Returns where the events begin from which on none was forgotten.
    pub(super) fn complete_from(&self) -> Read<Option<CompleteFrom>> {
        let seq: Option<Option<u64>> = self.one(COMPLETE_FROM, [], |row| row.get(0))?;
        let Some(seq) = seq.flatten() else { return Ok(None) };
        let first = "SELECT seq, at FROM events WHERE seq >= ?1 ORDER BY seq LIMIT 1";
        self.one(first, [seq], |row| Ok(CompleteFrom { seq: row.get(0)?, at: Wall(row.get(1)?) }))
    }

    /// Returns what was forgotten and not yet reported.
    pub(super) fn untold(&self) -> Read<Untold> {
        let text: Option<String> = self.one(UNTOLD, [], |row| row.get(0))?;
        Ok(text.map(|text| parse_untold(&text)).unwrap_or_default())
    }

    /// Returns the bytes that its rows take up; space of forgotten rows is not counted, and is used again.
    pub(super) fn bytes_used(&self) -> Read<u64> {
        let pages = self.number("page_count")?.saturating_sub(self.number("freelist_count")?);
        Ok(pages * self.number("page_size")?)
    }

    /// Returns the bytes of that space, if it can be given back.
    pub(super) fn bytes_free(&self) -> Read<u64> {
        match self.number("auto_vacuum")? {
            0 => Ok(0),
            _ => Ok(self.number("freelist_count")? * self.number("page_size")?),
        }
    }

    fn number(&self, pragma: &str) -> Read<u64> {
        let read = self.conn().pragma_query_value(None, pragma, |row| row.get(0));
        read.map_err(|source| self.error(source))
    }

    fn sessions_of(&self, sql: &str, before: Wall) -> Read<Vec<SessionId>> {
        let ids: Vec<String> = self.all(sql, params![before.0, KEPT_RUNS], |row: &Row<'_>| row.get(0))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}

/// A count that cannot be read starts over: it is only a count.
pub(super) fn parse_untold(text: &str) -> Untold {
    serde_json::from_str(text).unwrap_or_default()
}
