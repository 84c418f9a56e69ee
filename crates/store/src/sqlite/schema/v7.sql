-- How far the tape of a session was folded, and what was known then; stored in the transaction of what was heard.
CREATE TABLE cursors (
    session     TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    run         INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    state       TEXT NOT NULL,
    sum         INTEGER
) STRICT, WITHOUT ROWID;
