-- A checksum over the key and all other columns of a row; the rows that are there get theirs with this migration.
ALTER TABLE sessions ADD COLUMN sum INTEGER;
ALTER TABLE messages ADD COLUMN sum INTEGER;
ALTER TABLE runs ADD COLUMN sum INTEGER;
ALTER TABLE events ADD COLUMN sum INTEGER;
