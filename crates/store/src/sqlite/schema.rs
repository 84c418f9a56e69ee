//! The tables, and how a file of an older version becomes one of this version.

use super::sums::{MESSAGES, Sum, TABLES};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

/// Marks a file as ours ("PinF"), so that nothing is ever written into another program's database.
pub(crate) const APPLICATION_ID: i32 = 0x5069_6E46;

/// The schema version that this program writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The n-th entry brings a file from version n to n + 1. Entries are never changed, only added: files of
/// every version must load forever.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/v1.sql"),
    include_str!("schema/v2.sql"),
    include_str!("schema/v3.sql"),
    include_str!("schema/v4.sql"),
    include_str!("schema/v5.sql"),
    include_str!("schema/v6.sql"),
    include_str!("schema/v7.sql"),
    include_str!("schema/v8.sql"),
    include_str!("schema/v9.sql"),
];

/// The first version whose rows have checksums.
pub(crate) const SUMMED: i64 = 3;
/// The first version whose messages have a sender; from then on all rows can be read as they are.
pub(crate) const SENT_BY: i64 = 4;

/// The first version that knows what turns used, and which files messages were sent with.
pub(crate) const SPENDS: i64 = 9;

/// Returns the version of a file; 0 means no tables.
pub(crate) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a file to this version, all or nothing.
pub(crate) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    migrate_with(conn, MIGRATIONS, |conn, from| {
        give_sums(conn, from)?;
        let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('schema', ?1)";
        conn.execute(sql, [sum(conn)?]).map(drop)
    })
}

/// Returns the checksum of the tables' own descriptions: with a damaged one, rows would be read as something else.
fn sum(conn: &Connection) -> rusqlite::Result<i64> {
    let mut sum = Sum::of(7);
    let mut all = conn.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name, type")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..4 {
            sum.add(row.get_ref(column)?);
        }
    }
    Ok(sum.done())
}

/// Whether the tables are as they were created; files from before there were checksums are accepted as they are.
pub(crate) fn holds(conn: &Connection) -> rusqlite::Result<bool> {
    if version(conn)? < SUMMED {
        return Ok(true);
    }
    let noted: Option<i64> =
        conn.query_row("SELECT value FROM meta WHERE key = 'schema'", [], |row| row.get(0)).optional()?;
    Ok(noted == Some(sum(conn)?))
}

/// Gives checksums to rows from before there were any.
fn give_sums(transaction: &Connection, from: i64) -> rusqlite::Result<()> {
    if from >= SUMMED {
        let with_sender = if from < SENT_BY { Some(MESSAGES.wider_sums(1)) } else { None };
        return with_sender.map_or(Ok(()), |sql| transaction.execute(&sql, []).map(drop));
    }
    for table in TABLES {
        transaction.execute(&table.first_sums(), [])?;
    }
    transaction.execute("INSERT INTO meta (key, value) VALUES ('steps', 0)", []).map(drop)
}

fn migrate_with(
    conn: &mut Connection,
    migrations: &[&str],
    then: impl FnOnce(&Connection, i64) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    // A file that is up to date is not locked, not even for a moment: another process may be writing.
    if version(conn)? >= migrations.len() as i64 {
        return Ok(());
    }
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = version(&transaction)?;
    let done = usize::try_from(from).unwrap_or(usize::MAX);
    if done >= migrations.len() {
        return Ok(());
    }
    for migration in &migrations[done..] {
        transaction.execute_batch(migration)?;
    }
    then(&transaction, from)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", migrations.len())?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE one (x); INSERT INTO one VALUES (7);";
    fn nothing(_: &Connection, _: i64) -> rusqlite::Result<()> {
        Ok(())
    }

    const SECOND: &str = "ALTER TABLE one ADD COLUMN y DEFAULT 9;";

    #[test]
    fn migrations_run_once_each_and_in_order() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate_with(&mut conn, &[FIRST], nothing).unwrap();
        migrate_with(&mut conn, &[FIRST, SECOND], nothing).unwrap();
        migrate_with(&mut conn, &[FIRST, SECOND], nothing).unwrap();
        let row = conn.query_row("SELECT x, y FROM one", [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(row.unwrap(), (7, 9));
        assert_eq!(version(&conn).unwrap(), 2);
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate_with(&mut conn, &[FIRST], nothing).unwrap();
        migrate_with(&mut conn, &[FIRST, SECOND, "INSERT INTO nowhere VALUES (1)"], nothing).unwrap_err();
        assert_eq!(version(&conn).unwrap(), 1);
        conn.prepare("SELECT y FROM one").unwrap_err();
    }
}
