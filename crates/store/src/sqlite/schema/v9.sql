-- What turns took, a row each; it outlives the sessions that it tells of, as events do. Money is in billionths of a dollar.
CREATE TABLE usage (
    number      INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    session     TEXT NOT NULL,
    name        TEXT,
    run         INTEGER NOT NULL,
    message     TEXT,
    account     TEXT,
    model       TEXT,
    input       INTEGER,
    output      INTEGER,
    cached      INTEGER,
    cost        INTEGER,
    sum         INTEGER
) STRICT;

CREATE INDEX usage_by_message ON usage (message) WHERE message IS NOT NULL;
CREATE INDEX usage_by_time ON usage (at);

-- What is known of an account, as the core serializes it: whether it is held, and till when.
CREATE TABLE accounts (
    name        TEXT NOT NULL PRIMARY KEY,
    state       TEXT NOT NULL,
    sum         INTEGER
) STRICT, WITHOUT ROWID;

-- The files that were sent with a message, as a JSON array of paths.
CREATE TABLE files (
    message     TEXT NOT NULL PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    paths       TEXT NOT NULL,
    sum         INTEGER
) STRICT, WITHOUT ROWID;
