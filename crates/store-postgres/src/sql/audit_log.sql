-- Format 11: the audit log. Nothing else changes.

CREATE TABLE audit_log (
    at bigint NOT NULL,
    tie bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    who text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    detail text,
    reason text,
    status int NOT NULL,
    PRIMARY KEY (at, tie)
);

COMMENT ON TABLE audit_log IS 'What operators commanded, on any node; a limited number of entries is kept';
COMMENT ON COLUMN audit_log.tie IS 'Tells commands of the same moment apart';
COMMENT ON COLUMN audit_log.node IS 'The node that received the command';
COMMENT ON COLUMN audit_log.subject IS 'What the command is about; a key by its hash, empty for all that a filter finds';
COMMENT ON COLUMN audit_log.status IS 'The HTTP status of the response';

-- Adds an entry, unless it is there, and removes those from before a time and the oldest of too
-- many. Two callers at once may leave one more, until the next one.
CREATE FUNCTION add_audit_entry(
    _at bigint, _tie bigint, _node text, _who text, _action text, _kind text, _subject text, _detail text, _reason text,
    _status int, _since bigint, _kept int
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_log (at, tie, node, who, action, kind, subject, detail, reason, status)
    VALUES (_at, _tie, _node, _who, _action, _kind, _subject, _detail, _reason, _status)
    ON CONFLICT (at, tie) DO NOTHING;
    DELETE FROM audit_log AS a WHERE a.at < _since;
    DELETE FROM audit_log AS a
    USING (SELECT l.at, l.tie FROM audit_log AS l ORDER BY l.at DESC, l.tie DESC OFFSET _kept LIMIT 1) AS cut
    WHERE (a.at, a.tie) <= (cut.at, cut.tie);
END $$;
