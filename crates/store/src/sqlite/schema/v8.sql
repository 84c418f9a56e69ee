-- What the row of a message does not say of its answer: how long all of it is, the checksum of the file that has it (null
-- where the row has all of it), and whether some of it was left out.
CREATE TABLE answers (
    message     TEXT NOT NULL PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    bytes       INTEGER NOT NULL,
    content     INTEGER,
    cut         INTEGER NOT NULL,
    sum         INTEGER
) STRICT, WITHOUT ROWID;
