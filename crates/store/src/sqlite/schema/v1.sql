-- Times are milliseconds since the Unix epoch; ids are ULIDs as 26 characters.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    definition  TEXT NOT NULL,
    core        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    archived_at INTEGER,
    parent      TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    position    INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX sessions_by_name ON sessions (name) WHERE archived_at IS NULL;
CREATE INDEX sessions_by_old_name ON sessions (name) WHERE archived_at IS NOT NULL;
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_by_position ON sessions (position);

CREATE TABLE runs (
    session    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    id         TEXT UNIQUE,
    purpose    TEXT NOT NULL CHECK (purpose IN ('headless', 'interactive')),
    pid        INTEGER,
    fence      INTEGER,
    started_at INTEGER,
    ended_at   INTEGER,
    code       INTEGER,
    signal     INTEGER,
    verdict    TEXT,
    lived_ms   INTEGER,
    forced     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_open ON runs (session, number) WHERE ended_at IS NULL;

CREATE TABLE messages (
    id          TEXT PRIMARY KEY,
    session     TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key         TEXT,
    text        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('queued', 'delivered', 'done', 'failed')),
    tries       INTEGER NOT NULL CHECK (tries >= 0),
    enqueued_at INTEGER NOT NULL,
    done_at     INTEGER,
    answer      TEXT,
    failure     TEXT
) STRICT;

CREATE UNIQUE INDEX messages_by_key ON messages (session, key) WHERE key IS NOT NULL;
CREATE INDEX messages_by_state ON messages (session, state);
CREATE INDEX messages_by_session ON messages (session);

-- Outlives the sessions that it tells of: no reference, and the name as it was.
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    session TEXT,
    name    TEXT,
    run     TEXT,
    kind    TEXT NOT NULL,
    why     TEXT NOT NULL,
    data    TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_session ON events (session) WHERE session IS NOT NULL;
CREATE INDEX events_by_time ON events (at);
