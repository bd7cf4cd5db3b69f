-- Format 3: the state of limits and the costs of calls, for people. Amounts are in tokens.

-- Stand-alone buckets keep everything but their name. The functions that an older program calls
-- still find them; its queries of the table itself fail until it notices the new format.
ALTER TABLE rate_limit_buckets RENAME TO buckets;
ALTER INDEX rate_limit_buckets_pkey RENAME TO buckets_pkey;
DO $$
DECLARE
    found text;
BEGIN
    FOR found IN
        SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.proname IN ('reserve', 'settle_bucket')
    LOOP
        EXECUTE replace(found, 'rate_limit_buckets', 'buckets');
    END LOOP;
END $$;

CREATE TABLE rate_limit_buckets (
    name text COLLATE "C" NOT NULL,
    partition int NOT NULL,
    upstream text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    capacity double precision,
    refill_per_s double precision DEFAULT 2.0,
    level double precision,
    source text COLLATE "C" NOT NULL,
    closed_until bigint,
    updated_at bigint NOT NULL,
    PRIMARY KEY (name, partition)
) WITH (fillfactor = 50);

CREATE TABLE api_cost_tracking (
    partition int NOT NULL,
    at bigint NOT NULL,
    operation text COLLATE "C" NOT NULL,
    claim bigint NOT NULL,
    nth smallint NOT NULL,
    upstream text COLLATE "C" NOT NULL,
    limit_name text COLLATE "C" NOT NULL,
    shape text COLLATE "C" NOT NULL,
    requested double precision NOT NULL,
    actual double precision
);
CREATE INDEX api_cost_tracking_at ON api_cost_tracking (at);

COMMENT ON TABLE rate_limit_buckets IS 'Limits as they stood when they last changed, written every few seconds';
COMMENT ON COLUMN rate_limit_buckets.source IS 'Where its figures come from: config, operator or learned';
COMMENT ON TABLE api_cost_tracking IS 'What calls cost of limits, where their dialect says it';
COMMENT ON COLUMN api_cost_tracking.operation IS 'Its id, as the API shows it';
COMMENT ON COLUMN api_cost_tracking.shape IS 'What calls of its like have in common: a name, # and a short hash';
COMMENT ON COLUMN api_cost_tracking.requested IS 'What was taken before it was sent';
COMMENT ON COLUMN api_cost_tracking.actual IS 'What it really cost; nothing when the answer did not say';

-- An append with the costs of some calls. Most appends have none, and do not use this function.
CREATE FUNCTION append_with_costs(
    _partition int, _epoch bigint, _follows bigint, _facts bytea,
    _seqs bigint[], _ats bigint[], _groups text[], _kinds text[], _keys text[], _envelopes bytea[], _payloads bytea[],
    _ended bigint[], _ended_ats bigint[], _states text[], _attempts int[], _classes text[], _faults text[],
    _bodies bytea[], _reopened bigint[], _drained bigint[],
    _cost_ats bigint[], _operations text[], _claims bigint[], _nths smallint[], _limits text[], _shapes text[],
    _requested double precision[], _actual double precision[]
) RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT a.verdict, a.number INTO verdict, number
    FROM append(_partition, _epoch, _follows, _facts, _seqs, _ats, _groups, _kinds, _keys, _envelopes, _payloads, _ended,
        _ended_ats, _states, _attempts, _classes, _faults, _bodies, _reopened, _drained) AS a;
    IF verdict = 'ok' THEN
        INSERT INTO api_cost_tracking
        SELECT _partition, new.at, new.operation, new.claim, new.nth, split_part(new.limit_name, '/', 1), new.limit_name,
            new.shape, new.requested, new.actual
        FROM unnest(_cost_ats, _operations, _claims, _nths, _limits, _shapes, _requested, _actual)
            AS new (at, operation, claim, nth, limit_name, shape, requested, actual);
    END IF;
    RETURN NEXT;
END $$;

-- Removes some of the oldest costs of a partition that are before the cutoff.
CREATE FUNCTION sweep_costs(_partition int, _epoch bigint, _cut bigint, _most int)
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
    gone bigint;
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    DELETE FROM api_cost_tracking AS c WHERE c.ctid = ANY (ARRAY(
        SELECT old.ctid FROM api_cost_tracking AS old
        WHERE old.at < _cut AND old.partition = _partition ORDER BY old.at LIMIT _most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN QUERY SELECT 'ok', gone;
END $$;

-- Stores the state of limits, each replacing the previous state.
CREATE FUNCTION keep_standings(
    _partition int, _epoch bigint, _names text[], _sorts text[], _capacities double precision[],
    _rates double precision[], _levels double precision[], _sources text[], _closed bigint[], _updated bigint[]
) RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    INSERT INTO rate_limit_buckets
        (name, partition, upstream, kind, capacity, refill_per_s, level, source, closed_until, updated_at)
    SELECT new.name, _partition, split_part(new.name, '/', 1), new.sort, new.capacity, new.rate, new.level, new.source,
        new.closed, new.updated
    FROM unnest(_names, _sorts, _capacities, _rates, _levels, _sources, _closed, _updated)
        AS new (name, sort, capacity, rate, level, source, closed, updated)
    ON CONFLICT (name, partition) DO UPDATE SET kind = excluded.kind, capacity = excluded.capacity,
        refill_per_s = excluded.refill_per_s, level = excluded.level, source = excluded.source,
        closed_until = excluded.closed_until, updated_at = excluded.updated_at;
    RETURN QUERY SELECT 'ok', 0::bigint;
END $$;
