-- Format 10: the events of deployments. What an older program calls is still there, and writes
-- events too; deployments that were written before have none.

CREATE TABLE deployment_events (
    deployment text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
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
    PRIMARY KEY (deployment, seq)
);

COMMENT ON TABLE deployment_events IS 'What happened to the steps of deployments: each line of a step as it was written';
COMMENT ON COLUMN deployment_events.seq IS 'Counted from 1 within a deployment; the oldest of too many are removed';
COMMENT ON COLUMN deployment_events.state IS 'planned, applied or failed';

-- Writes a deployment, unless a writer with a newer fence has written it. A new one makes room: a
-- limited number of the ended ones of its scope is kept.
CREATE OR REPLACE FUNCTION keep_deployment(
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
        DELETE FROM deployment_events AS e WHERE e.deployment = ANY (gone);
        DELETE FROM deployments AS d WHERE d.id = ANY (gone);
    END IF;
    INSERT INTO deployments VALUES (_id, _scope, _fence, _round, _stage, _request, _note, _started, _updated)
    ON CONFLICT (id) DO UPDATE SET scope = excluded.scope, fence = excluded.fence, round = excluded.round,
        stage = excluded.stage, request = excluded.request, note = excluded.note, started_at = excluded.started_at,
        updated_at = excluded.updated_at;
    RETURN true;
END $$;

-- Writes lines of a deployment, unless it does not exist or a writer with a newer fence has written
-- it. Each step is an event, in this order; of those with the same kind and key the last one is the
-- state of the step. There is at most one object per kind and key; one without an id is removed.
CREATE OR REPLACE FUNCTION write_journal(
    _id text, _fence bigint,
    _kinds text[], _keys text[], _nths bigint[], _actions text[], _fingerprints text[], _states text[],
    _operations text[], _foreign_ids text[], _notes text[], _ats bigint[],
    _object_kinds text[], _object_keys text[], _object_ids text[], _places text[], _object_fingerprints text[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    -- As many as the other stores keep.
    events_kept CONSTANT bigint := 10000;
    known record;
    last bigint;
BEGIN
    PERFORM hold_journal();
    SELECT d.fence, d.scope INTO known FROM deployments AS d WHERE d.id = _id;
    IF NOT FOUND OR known.fence > _fence THEN
        RETURN false;
    END IF;
    INSERT INTO deployment_steps
        (deployment, kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at)
    SELECT DISTINCT ON (new.kind COLLATE "C", new.key COLLATE "C")
        _id, new.kind, new.key, new.nth, new.action, new.fingerprint, new.state, new.operation, new.foreign_id,
        new.note, new.at
    FROM unnest(_kinds, _keys, _nths, _actions, _fingerprints, _states, _operations, _foreign_ids, _notes, _ats)
        WITH ORDINALITY
        AS new (kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at, place)
    ORDER BY new.kind COLLATE "C", new.key COLLATE "C", new.place DESC
    ON CONFLICT (deployment, kind, key) DO UPDATE SET nth = excluded.nth, action = excluded.action,
        fingerprint = excluded.fingerprint, state = excluded.state, operation = excluded.operation,
        foreign_id = excluded.foreign_id, note = excluded.note, at = excluded.at;
    IF cardinality(_kinds) > 0 THEN
        SELECT coalesce(max(e.seq), 0) INTO last FROM deployment_events AS e WHERE e.deployment = _id;
        INSERT INTO deployment_events
            (deployment, seq, kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at)
        SELECT _id, last + new.place, new.kind, new.key, new.nth, new.action, new.fingerprint, new.state, new.operation,
            new.foreign_id, new.note, new.at
        FROM unnest(_kinds, _keys, _nths, _actions, _fingerprints, _states, _operations, _foreign_ids, _notes, _ats)
            WITH ORDINALITY
            AS new (kind, key, nth, action, fingerprint, state, operation, foreign_id, note, at, place);
        DELETE FROM deployment_events AS e
        WHERE e.deployment = _id AND e.seq <= last + cardinality(_kinds) - events_kept;
    END IF;
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
