-- Every message moved through this index on its way from queued to done. Those that failed are few; those that wait have
-- an index of their own, and most of the others are done.
DROP INDEX messages_by_state;
CREATE INDEX messages_failed ON messages (session) WHERE state = 'failed';
