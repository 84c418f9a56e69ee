//! The tables, and how a file of an older version becomes one of this version.

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as ours ("PinF"), so that nothing is ever written into somebody else's database.
pub(crate) const APPLICATION_ID: i32 = 0x5069_6E46;

/// The schema version that this program writes.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The n-th entry brings a file from version n to n + 1. Entries are never changed, only added:
/// files of every version must load for ever.
const MIGRATIONS: &[&str] = &[include_str!("schema/v1.sql"), include_str!("schema/v2.sql")];

/// The version of a file; 0 is one without tables.
pub(crate) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a file to this version, all or nothing.
pub(crate) fn migrate(conn: &mut Connection) -> rusqlite::Result<()> {
    migrate_with(conn, MIGRATIONS)
}

fn migrate_with(conn: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = version(&transaction)?;
    let done = usize::try_from(from).unwrap_or(usize::MAX);
    if done >= migrations.len() {
        return Ok(());
    }
    for migration in &migrations[done..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", migrations.len())?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE one (x); INSERT INTO one VALUES (7);";
    const SECOND: &str = "ALTER TABLE one ADD COLUMN y DEFAULT 9;";

    #[test]
    fn migrations_run_once_each_and_in_order() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate_with(&mut conn, &[FIRST]).unwrap();
        migrate_with(&mut conn, &[FIRST, SECOND]).unwrap();
        migrate_with(&mut conn, &[FIRST, SECOND]).unwrap();
        let row = conn.query_row("SELECT x, y FROM one", [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(row.unwrap(), (7, 9));
        assert_eq!(version(&conn).unwrap(), 2);
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate_with(&mut conn, &[FIRST]).unwrap();
        migrate_with(&mut conn, &[FIRST, SECOND, "INSERT INTO nowhere VALUES (1)"]).unwrap_err();
        assert_eq!(version(&conn).unwrap(), 1);
        conn.prepare("SELECT y FROM one").unwrap_err();
    }
}
