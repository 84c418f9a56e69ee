-- The name of the session that sent a message; nothing where a person did. Checksums are made anew with this migration.
ALTER TABLE messages ADD COLUMN sender TEXT;
