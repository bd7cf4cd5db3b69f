-- Format 4: the journal of deployments. Nothing that existed changes, and no older program misses
-- it.

CREATE TABLE deployments (
    id text COLLATE "C" PRIMARY KEY,
    scope text COLLATE "C" NOT NULL,
    fence bigint NOT NULL,
    round bigint NOT NULL,
    stage text COLLATE "C" NOT NULL,
    request bytea NOT NULL,
    note text,
    started_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX deployments_scope ON deployments (scope, id);

CREATE TABLE deployment_steps (
    deployment text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    nth bigint NOT NULL,
    action text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    operation text COLLATE "C",
    foreign_id text COLLATE "C",
    note text,
    at bigint NOT NULL,
    PRIMARY KEY (deployment, kind, key)
);

CREATE TABLE deployment_objects (
    scope text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    place text COLLATE "C",
    fingerprint text COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, kind, key)
);

COMMENT ON TABLE deployments IS 'Deployments; of those that ended the newest of each scope';
COMMENT ON COLUMN deployments.scope IS 'What it changes, as in guild:41771983423143937';
COMMENT ON COLUMN deployments.fence IS 'Of the lease of whoever writes it';
COMMENT ON COLUMN deployments.stage IS 'running, done or failed';
COMMENT ON TABLE deployment_steps IS 'What became of each step of a deployment, one row for each kind and key';
COMMENT ON COLUMN deployment_steps.state IS 'planned, applied or failed';
COMMENT ON COLUMN deployment_steps.operation IS 'The id of the operation that carries it';
COMMENT ON COLUMN deployment_steps.foreign_id IS 'The object, when it is known';
COMMENT ON TABLE deployment_objects IS 'Which object has which key in a scope';

-- The lock for writing the journal. Lines are few, so one writer at a time is enough, and no two
-- can deadlock.
CREATE FUNCTION hold_journal() RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('tidegate journal of ' || current_schema(), 0))
$$;

-- Writes a deployment, unless a writer with a newer fence has written it. A new one makes room: a
-- limited number of the ended ones of its scope is kept.
CREATE FUNCTION keep_deployment(
    _id text, _scope text, _fence bigint, _round bigint, _stage text, _request bytea, _note text, _started bigint,
    _updated bigint, _stay int
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    known bigint;
    gone text[];
BEGIN
    PERFORM hold_journal();
    SELECT d.fence INTO known FROM deployments AS d WHERE d.id = _id;
    IF known > _fence THEN
        RETURN false;
    ELSIF known IS NULL THEN
        gone := ARRAY(SELECT d.id FROM deployments AS d WHERE d.scope = _scope AND d.stage <> 'running'
            ORDER BY d.id DESC OFFSET _stay);
        DELETE FROM deployment_steps AS s WHERE s.deployment = ANY (gone);
        DELETE FROM deployments AS d WHERE d.id = ANY (gone);
    END IF;
    INSERT INTO deployments VALUES (_id, _scope, _fence, _round, _stage, _request, _note, _started, _updated)
    ON CONFLICT (id) DO UPDATE SET scope = excluded.scope, fence = excluded.fence, round = excluded.round,
        stage = excluded.stage, request = excluded.request, note = excluded.note, started_at = excluded.started_at,
        updated_at = excluded.updated_at;
    RETURN true;
END $$;

-- Writes lines of a deployment, unless it does not exist or a writer with a newer fence has written
-- it. There is at most one step and one object per kind and key among them; an object without an id
-- is removed.
CREATE FUNCTION write_journal(
    _id text, _fence bigint,
    _kinds text[], _keys text[], _nths bigint[], _actions text[], _fingerprints text[], _states text[],
    _operations text[], _foreign_ids text[], _notes text[], _ats bigint[],
    _object_kinds text[], _object_keys text[], _object_ids text[], _places text[], _object_fingerprints text[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    known record;
BEGIN
    PERFORM hold_journal();
    SELECT d.fence, d.scope INTO known FROM deployments AS d WHERE d.id = _id;
    IF NOT FOUND OR known.fence > _fence THEN
        RETURN false;
    END IF;
    INSERT INTO deployment_steps
        (deployment, kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at)
    SELECT _id, new.kind, new.key, new.nth, new.action, new.fingerprint, new.state, new.operation, new.foreign_id,
        new.note, new.at
    FROM unnest(_kinds, _keys, _nths, _actions, _fingerprints, _states, _operations, _foreign_ids, _notes, _ats)
        AS new (kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at)
    ON CONFLICT (deployment, kind, key) DO UPDATE SET nth = excluded.nth, action = excluded.action,
        fingerprint = excluded.fingerprint, state = excluded.state, operation = excluded.operation,
        foreign_id = excluded.foreign_id, note = excluded.note, at = excluded.at;
    -- One index lookup for each removed row: joined the other way round, all of a scope would be
    -- read for each.
    DELETE FROM deployment_objects AS o WHERE o.ctid = ANY (ARRAY(
        SELECT found.ctid FROM unnest(_object_kinds, _object_keys, _object_ids) AS old (kind, key, id)
        CROSS JOIN LATERAL (
            SELECT k.ctid FROM deployment_objects AS k
            WHERE k.scope = known.scope AND k.kind = old.kind AND k.key = old.key OFFSET 0
        ) AS found
        WHERE old.id IS NULL));
    INSERT INTO deployment_objects (scope, kind, key, id, place, fingerprint)
    SELECT known.scope, new.kind, new.key, new.id, new.place, new.fingerprint
    FROM unnest(_object_kinds, _object_keys, _object_ids, _places, _object_fingerprints)
        AS new (kind, key, id, place, fingerprint)
    WHERE new.id IS NOT NULL
    ON CONFLICT (scope, kind, key) DO UPDATE SET id = excluded.id, place = excluded.place,
        fingerprint = excluded.fingerprint;
    RETURN true;
END $$;
