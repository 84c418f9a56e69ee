//! Checksums of rows: every row carries one over its key and all of its columns, computed when it is written
//! and compared when it is read.
//!
//! SQLite calls [`row_sum`](ROW_SUM) and [`resum`](RESUM) from the statements themselves, so no row is read
//! to be written. A row whose checksum was wrong before it is changed stays wrong: a change does not repair damage.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

/// `row_sum(tag, column, ...)`: the checksum of a row.
const ROW_SUM: &str = "row_sum";
/// `resum(tag, sum, column before, ..., column after, ...)`: its checksum after a change.
const RESUM: &str = "resum";

/// One table with checksums. The order of its columns is the order in which they are summed and read, forever.
pub(crate) struct SummedTable {
    pub(crate) name: &'static str,
    /// Tells rows of one table from those of another.
    tag: i64,
    pub(crate) columns: &'static [&'static str],
    /// Columns that SQLite itself changes; a column that is summed has the same contents.
    pub(crate) besides: &'static [&'static str],
}

pub(crate) const SESSIONS: SummedTable = SummedTable {
    name: "sessions",
    tag: 1,
    columns: &["id", "name", "definition", "core", "created_at", "archived_at", "position"],
    besides: &["parent"],
};
pub(crate) const MESSAGES: SummedTable = SummedTable {
    name: "messages",
    tag: 2,
    columns: &[
        "id",
        "session",
        "key",
        "text",
        "state",
        "tries",
        "enqueued_at",
        "done_at",
        "answer",
        "failure",
        "run",
        "log_from",
        "log_to",
        "sender",
    ],
    besides: &[],
};
pub(crate) const RUNS: SummedTable = SummedTable {
    name: "runs",
    tag: 3,
    columns: &[
        "session",
        "number",
        "id",
        "purpose",
        "pid",
        "fence",
        "started_at",
        "ended_at",
        "code",
        "signal",
        "verdict",
        "lived_ms",
        "forced",
    ],
    besides: &[],
};
pub(crate) const EVENTS: SummedTable = SummedTable {
    name: "events",
    tag: 4,
    columns: &["seq", "at", "session", "name", "run", "kind", "why", "data"],
    besides: &[],
};
pub(crate) const KEYS: SummedTable = SummedTable {
    name: "keys",
    tag: 5,
    columns: &["session", "key", "message", "enqueued_at", "done_at"],
    besides: &[],
};
pub(crate) const CURSORS: SummedTable =
    SummedTable { name: "cursors", tag: 6, columns: &["session", "run", "position", "state"], besides: &[] };
pub(crate) const ANSWERS: SummedTable =
    SummedTable { name: "answers", tag: 7, columns: &["message", "bytes", "content", "cut"], besides: &[] };
pub(crate) const USAGE: SummedTable = SummedTable {
    name: "usage",
    tag: 8,
    columns: &[
        "number", "at", "session", "name", "run", "message", "account", "model", "input", "output", "cached",
        "cost",
    ],
    besides: &[],
};
pub(crate) const ACCOUNTS: SummedTable =
    SummedTable { name: "accounts", tag: 9, columns: &["name", "state"], besides: &[] };
pub(crate) const FILES: SummedTable =
    SummedTable { name: "files", tag: 10, columns: &["message", "paths"], besides: &[] };
/// All tables with checksums.
pub(crate) const TABLES: [&SummedTable; 10] =
    [&SESSIONS, &MESSAGES, &RUNS, &EVENTS, &KEYS, &CURSORS, &ANSWERS, &USAGE, &ACCOUNTS, &FILES];

impl SummedTable {
    /// Returns the statement that reads all columns and the checksum.
    pub(crate) fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.all(), self.name)
    }

    /// Returns all columns in the order in which rows are read.
    pub(crate) fn all(&self) -> String {
        let besides: String = self.besides.iter().map(|column| format!(", {column}")).collect();
        format!("{}, sum{besides}", self.columns.join(", "))
    }

    /// Returns the statement for a new row; columns that are not named are null.
    pub(crate) fn insert(&self, values: &[(&str, &str)]) -> String {
        let row = self.columns.iter().map(|column| value_of(values, column).unwrap_or("NULL"));
        let row = row.collect::<Vec<_>>().join(", ");
        let besides: String = self
            .besides
            .iter()
            .map(|column| format!(", {}", value_of(values, column).unwrap_or("NULL")))
            .collect();
        let (name, all, tag) = (self.name, self.all(), self.tag);
        format!("INSERT INTO {name} ({all}) VALUES ({row}, {ROW_SUM}({tag}, {row}){besides})")
    }

    /// Returns the statement for a new row whose columns, and whose checksum as the last, are the parameters in order.
    pub(crate) fn insert_made(&self) -> String {
        let parameters = (1..=self.columns.len() + 1).map(|number| format!("?{number}"));
        format!(
            "INSERT INTO {} ({}, sum) VALUES ({})",
            self.name,
            self.columns.join(", "),
            parameters.collect::<Vec<_>>().join(", ")
        )
    }

    /// Returns the checksum of a row.
    pub(crate) fn sum<'a>(&self, row: impl IntoIterator<Item = ValueRef<'a>>) -> i64 {
        let mut sum = Sum::of(self.tag);
        row.into_iter().for_each(|value| sum.add(value));
        sum.done()
    }

    /// Returns the assignments of a change, with the checksum that belongs to it.
    pub(crate) fn set(&self, values: &[(&str, &str)]) -> String {
        let sets: String = values.iter().map(|(column, value)| format!("{column} = {value}, ")).collect();
        // In an upsert, as in an update, a bare name means the existing row.
        let now = self.columns.iter().map(|column| value_of(values, column).unwrap_or(column));
        let (now, before) = (now.collect::<Vec<_>>().join(", "), self.columns.join(", "));
        format!("{sets}sum = {RESUM}({}, sum, {before}, {now})", self.tag)
    }

    /// Returns the statement that changes the rows of a condition.
    pub(crate) fn update(&self, values: &[(&str, &str)], condition: &str) -> String {
        format!("UPDATE {} SET {} WHERE {condition}", self.name, self.set(values))
    }

    /// Returns the statement that sums the rows of a file without checksums.
    pub(crate) fn first_sums(&self) -> String {
        let (name, columns, tag) = (self.name, self.columns.join(", "), self.tag);
        format!("UPDATE {name} SET sum = {ROW_SUM}({tag}, {columns})")
    }

    /// Returns the statement that sums rows again after `new` columns were added; damage stays damage.
    pub(crate) fn wider_sums(&self, new: usize) -> String {
        let (name, columns, tag) = (self.name, self.columns.join(", "), self.tag);
        let before = self.columns[..self.columns.len() - new].join(", ");
        format!(
            "UPDATE {name} SET sum = CASE WHEN sum = {ROW_SUM}({tag}, {before})
             THEN {ROW_SUM}({tag}, {columns}) ELSE ~{ROW_SUM}({tag}, {columns}) END"
        )
    }

    /// Whether a row of [`select`](Table::select) is as it was written.
    pub(crate) fn holds(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let mut sum = Sum::of(self.tag);
        for column in 0..self.columns.len() {
            sum.add(row.get_ref(column)?);
        }
        Ok(row.get_ref(self.columns.len())? == ValueRef::Integer(sum.done()))
    }
}

fn value_of<'a>(values: &[(&str, &'a str)], column: &str) -> Option<&'a str> {
    values.iter().find(|(name, _)| *name == column).map(|(_, value)| *value)
}

/// Registers the functions that statements with checksums call.
pub(crate) fn teach(conn: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    conn.create_scalar_function(ROW_SUM, -1, flags, |call| summed(call, 1..call.len(), call.get(0)?))?;
    conn.create_scalar_function(RESUM, -1, flags, |call| {
        let (tag, half) = (call.get(0)?, 2 + (call.len() - 2) / 2);
        let sum = summed(call, half..call.len(), tag)?;
        let held = call.get_raw(1) == ValueRef::Integer(summed(call, 2..half, tag)?);
        // Its complement is never the checksum.
        Ok(if held { sum } else { !sum })
    })
}

fn summed(call: &Context<'_>, columns: std::ops::Range<usize>, tag: i64) -> rusqlite::Result<i64> {
    let mut sum = Sum::of(tag);
    columns.for_each(|column| sum.add(call.get_raw(column)));
    Ok(sum.done())
}

/// A checksum under way. Each step is a bijection of what was summed so far and of the added word, so a
/// change within one word of eight bytes never goes unnoticed, and others do once in 2^64.
pub(crate) struct Sum(u64);

impl Sum {
    pub(crate) fn of(tag: i64) -> Sum {
        let mut sum = Sum(0x9E37_79B9_7F4A_7C15);
        sum.word(tag.cast_unsigned());
        sum
    }

    /// Kind and length go first: `ab`, `c` is not `a`, `bc`, and null is not zero.
    pub(crate) fn add(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.word(1),
            ValueRef::Integer(number) => self.words(2, &number.to_le_bytes()),
            ValueRef::Real(number) => self.words(3, &number.to_bits().to_le_bytes()),
            ValueRef::Text(bytes) => self.words(4, bytes),
            ValueRef::Blob(bytes) => self.words(5, bytes),
        }
    }

    pub(crate) fn done(&self) -> i64 {
        (self.0 ^ (self.0 >> 32)).cast_signed()
    }

    fn words(&mut self, kind: u64, bytes: &[u8]) {
        self.word(kind | ((bytes.len() as u64) << 3));
        let (whole, rest) = bytes.as_chunks::<8>();
        whole.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }

    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        self.0 = mixed ^ (mixed >> 29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &[u8]) -> i64 {
        let mut sum = Sum::of(2);
        sum.add(ValueRef::Text(text));
        sum.done()
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let mut text = *b"what was acknowledged is true";
        let before = sum(&text);
        for bit in 0..8 * text.len() {
            text[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(sum(&text), before, "bit {bit}");
            text[bit / 8] ^= 1 << (bit % 8);
        }
        assert_ne!(sum(&text[..28]), before);
    }

    #[test]
    fn columns_are_not_mistaken_for_each_other() {
        let pair = |one: ValueRef<'_>, two: ValueRef<'_>| {
            let mut sum = Sum::of(1);
            sum.add(one);
            sum.add(two);
            sum.done()
        };
        let text = |text: &'static str| ValueRef::Text(text.as_bytes());
        assert_ne!(pair(text("ab"), text("c")), pair(text("a"), text("bc")));
        assert_ne!(pair(ValueRef::Null, text("")), pair(text(""), ValueRef::Null));
        assert_ne!(pair(ValueRef::Integer(0), ValueRef::Null), pair(ValueRef::Null, ValueRef::Integer(0)));
    }

    #[test]
    fn a_change_of_a_damaged_row_does_not_make_it_good() {
        let conn = Connection::open_in_memory().unwrap();
        teach(&conn).unwrap();
        let columns = EVENTS.columns.join(", ");
        conn.execute_batch(&format!("CREATE TABLE events ({columns}, sum)")).unwrap();
        conn.execute(&EVENTS.insert(&[("seq", "1"), ("why", "'first'")]), []).unwrap();
        let holds = || conn.query_row(&EVENTS.select(), [], |row| EVENTS.holds(row)).unwrap();
        assert!(holds());
        let change = EVENTS.update(&[("why", "why || ' second'")], "seq = 1");
        conn.execute(&change, []).unwrap();
        assert!(holds());
        conn.execute("UPDATE events SET why = 'flipped'", []).unwrap();
        assert!(!holds());
        conn.execute(&change, []).unwrap();
        assert!(!holds(), "it was damaged before it was changed");
    }
}
