//! What is old enough to be forgotten, and how large all of it is.

use super::reader::Reader;
use crate::query::Read;
use crate::ulid::SessionId;
use pinfold_core::Wall;
use rusqlite::Row;

/// The first run of a session is its oldest one: one look at each session is enough.
const OLD_RUNS: &str = "SELECT id FROM sessions WHERE archived_at IS NULL AND
     (SELECT ended_at FROM runs WHERE session = sessions.id ORDER BY number LIMIT 1) < ?1";
const OLD_MESSAGES: &str = "SELECT id FROM sessions WHERE archived_at IS NULL AND
     (SELECT done_at FROM messages WHERE session = sessions.id AND state = 'done' ORDER BY rowid LIMIT 1) < ?1";

impl Reader {
    /// Sessions, not archived, whose oldest run had ended before a moment.
    pub(super) fn with_old_runs(&self, before: Wall) -> Read<Vec<SessionId>> {
        self.sessions_of(OLD_RUNS, before)
    }

    /// Sessions, not archived, whose oldest message that is done was so before a moment.
    pub(super) fn with_old_messages(&self, before: Wall) -> Read<Vec<SessionId>> {
        self.sessions_of(OLD_MESSAGES, before)
    }

    /// When the oldest event was.
    pub(super) fn oldest_event(&self) -> Read<Option<Wall>> {
        self.one("SELECT at FROM events ORDER BY seq LIMIT 1", [], |row| row.get(0).map(Wall))
    }

    /// The bytes that its rows take up: what was forgotten leaves room in the file, which is used again.
    pub(super) fn bytes_used(&self) -> Read<u64> {
        let number = |name: &str| {
            let read = self.conn().pragma_query_value(None, name, |row| row.get::<_, u64>(0));
            read.map_err(|source| self.error(source))
        };
        let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
        Ok(pages * number("page_size")?)
    }

    fn sessions_of(&self, sql: &str, before: Wall) -> Read<Vec<SessionId>> {
        let ids: Vec<String> = self.all(sql, [before.0], |row: &Row<'_>| row.get(0))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}
