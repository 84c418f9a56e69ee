-- Where the output of a message's last turn stands: the number of its run, and positions in the session's log.
ALTER TABLE messages ADD COLUMN run INTEGER;
ALTER TABLE messages ADD COLUMN log_from INTEGER;
ALTER TABLE messages ADD COLUMN log_to INTEGER;

-- The queue of a session is read from here: it is no part of the session's own record any more.
CREATE INDEX messages_waiting ON messages (session) WHERE state IN ('queued', 'delivered');
