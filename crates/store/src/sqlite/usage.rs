//! What turns used and what is known about accounts, read and written.

use super::parse::{account_row, files_row, usage_row};
use super::reader::SqliteReader;
use super::sums::{ACCOUNTS, FILES, USAGE};
use crate::query::Read;
use crate::rows::{Message, RowDamage};
use crate::usage::{Spent, Sums, Taken, UsageQuery, UsageSum};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::sync::LazyLock;

static SINCE: LazyLock<String> =
    LazyLock::new(|| format!("{} WHERE at >= ?1 ORDER BY at, number", USAGE.select()));
static OF_MESSAGE: LazyLock<String> =
    LazyLock::new(|| format!("{} WHERE message = ?1 ORDER BY number", USAGE.select()));
static ALL_ACCOUNTS: LazyLock<String> = LazyLock::new(|| format!("{} ORDER BY name", ACCOUNTS.select()));
static OF_FILES: LazyLock<String> = LazyLock::new(|| format!("{} WHERE message = ?1", FILES.select()));

impl SqliteReader {
    /// Returns sums of what turns used; rows pass one by one, however many there are.
    pub(super) fn usage(&self, query: &UsageQuery) -> Read<Vec<UsageSum>> {
        let mut sums = Sums::new(query.by);
        let since = query.since.map_or(i64::MIN, |since| since.0);
        let mut count = || -> rusqlite::Result<()> {
            let mut statement = self.conn().prepare_cached(&SINCE)?;
            let mut rows = statement.query([since])?;
            while let Some(row) = rows.next()? {
                if let Ok((spent, name)) = usage_row(row)? {
                    sums.add(&spent, name.as_deref());
                }
            }
            Ok(())
        };
        count().map_err(|source| self.error(source))?;
        Ok(sums.done())
    }

    /// Returns what is known about accounts.
    pub(super) fn accounts(&self) -> Read<Vec<(String, String)>> {
        Ok(self.all(&ALL_ACCOUNTS, [], account_row)?.into_iter().flatten().collect())
    }

    /// Adds to a message what its turns used and the files it was sent with; if those are damaged, so is the message.
    pub(super) fn with_rest(&self, message: Message) -> Read<Message> {
        let id = message.id.to_string();
        let files = match self.one(&OF_FILES, [id.as_str()], files_row)? {
            Some(Err(damage)) => return Ok(Message { damage: Some(damage), ..message }),
            Some(Ok(files)) => files,
            None => Vec::new(),
        };
        let rows = self.all(&OF_MESSAGE, [id.as_str()], usage_of)?;
        let taken = rows.into_iter().flatten().fold(None, |sum: Option<Taken>, spent| {
            let sum = sum.unwrap_or_default();
            Some(Taken { figures: sum.figures.plus(spent.figures), model: spent.model.or(sum.model) })
        });
        Ok(Message { files, taken, ..message })
    }
}

fn usage_of(row: &Row<'_>) -> rusqlite::Result<Result<Spent, RowDamage>> {
    Ok(usage_row(row)?.map(|(spent, _)| spent))
}

/// The texts of a row, which its columns borrow.
pub(super) struct SpentRow {
    session: String,
    message: Option<String>,
    name: Option<String>,
}

impl SpentRow {
    pub(super) fn of(spent: &Spent, name: Option<String>) -> SpentRow {
        SpentRow {
            session: spent.session.to_string(),
            message: spent.message.map(|message| message.to_string()),
            name,
        }
    }

    /// Returns its columns, in order.
    pub(super) fn columns<'a>(&'a self, number: i64, spent: &'a Spent) -> [ValueRef<'a>; 12] {
        let figure = |figure: Option<u64>| {
            // The largest number that SQLite has.
            let most = |figure: u64| ValueRef::Integer(i64::try_from(figure).unwrap_or(i64::MAX));
            figure.map_or(ValueRef::Null, most)
        };
        let figures = spent.figures;
        [
            ValueRef::Integer(number),
            ValueRef::Integer(spent.at.0),
            self.session.as_str().into(),
            self.name.as_deref().into(),
            ValueRef::Integer(spent.run.0.cast_signed()),
            self.message.as_deref().into(),
            spent.account.as_deref().into(),
            spent.model.as_deref().into(),
            figure(figures.input),
            figure(figures.output),
            figure(figures.cached),
            figure(figures.cost.map(|cost| cost.0)),
        ]
    }
}
