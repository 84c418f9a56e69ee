-- Keys of messages that were forgotten: the same key twice is still one message, for as long as its session is there.
CREATE TABLE keys (
    session     TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key         TEXT NOT NULL,
    message     TEXT NOT NULL,
    enqueued_at INTEGER NOT NULL,
    done_at     INTEGER,
    sum         INTEGER,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;
