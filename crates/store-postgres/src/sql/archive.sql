-- Ended operations, one row for each. A row is written when its operation has ended, and again when
-- it ran again and ended later. Ids sort by the time of acceptance, so rows arrive nearly in the
-- order of the primary key.

CREATE TABLE meta (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL);

CREATE TABLE operations (
    id text COLLATE "C" PRIMARY KEY,
    accepted_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL,
    state text COLLATE "C" NOT NULL,
    grp text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    attempts int NOT NULL,
    fault_class text COLLATE "C",
    fault text,
    partition int NOT NULL,
    seq bigint NOT NULL,
    envelope bytea NOT NULL,
    payload bytea NOT NULL,
    body bytea NOT NULL
);
CREATE INDEX operations_ended ON operations (ended_at);
CREATE INDEX operations_of_group ON operations (grp, ended_at);

COMMENT ON TABLE operations IS 'Operations that have ended, kept for good';
COMMENT ON COLUMN operations.id IS 'As the API shows it';
COMMENT ON COLUMN operations.state IS 'succeeded, failed or canceled';
COMMENT ON COLUMN operations.grp IS 'Its group';
COMMENT ON COLUMN operations.key IS 'The caller''s dedupe_key';
COMMENT ON COLUMN operations.attempts IS 'Attempts that were spent';
COMMENT ON COLUMN operations.fault_class IS 'Why it did not succeed, in a word';
COMMENT ON COLUMN operations.fault IS 'The same in a sentence';
COMMENT ON COLUMN operations.envelope IS 'How it was asked for: JSON, or nothing when all was left at its default';
COMMENT ON COLUMN operations.payload IS 'What was sent; JSON with the built-in kinds';
COMMENT ON COLUMN operations.body IS 'What came back; JSON with the built-in kinds, nothing when nothing came';
