-- Format 9: what limits restore per second is called refill_rate, and the costs of calls have the
-- restore_rate that the response reported. The state of limits that are gone is removed. What an older
-- program calls is still there.

ALTER TABLE rate_limit_buckets RENAME COLUMN refill_per_s TO refill_rate;
ALTER TABLE api_cost_tracking ADD COLUMN restore_rate double precision;

COMMENT ON COLUMN rate_limit_buckets.refill_rate IS 'What comes back per second; nothing for a window, a cap or a gate';
COMMENT ON COLUMN api_cost_tracking.restore_rate IS 'What the limit restored per second, as the answer said';

-- An append with the costs of some calls, and with attempts if there are any. Most appends have
-- neither, and do not use these functions.
CREATE FUNCTION append_with_costs(
    _partition int, _epoch bigint, _follows bigint, _facts bytea,
    _seqs bigint[], _ats bigint[], _groups text[], _kinds text[], _keys text[], _envelopes bytea[], _payloads bytea[],
    _ended bigint[], _ended_ats bigint[], _states text[], _attempts int[], _classes text[], _faults text[],
    _bodies bytea[], _reopened bigint[], _drained bigint[],
    _cost_ats bigint[], _operations text[], _claims bigint[], _nths smallint[], _limits text[], _shapes text[],
    _requested double precision[], _actual double precision[], _rates double precision[]
) RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT a.verdict, a.number INTO verdict, number
    FROM append(_partition, _epoch, _follows, _facts, _seqs, _ats, _groups, _kinds, _keys, _envelopes, _payloads, _ended,
        _ended_ats, _states, _attempts, _classes, _faults, _bodies, _reopened, _drained) AS a;
    IF verdict = 'ok' THEN
        INSERT INTO api_cost_tracking
            (partition, at, operation, claim, nth, upstream, limit_name, shape, requested, actual, restore_rate)
        SELECT _partition, new.at, new.operation, new.claim, new.nth, split_part(new.limit_name, '/', 1), new.limit_name,
            new.shape, new.requested, new.actual, new.rate
        FROM unnest(_cost_ats, _operations, _claims, _nths, _limits, _shapes, _requested, _actual, _rates)
            AS new (at, operation, claim, nth, limit_name, shape, requested, actual, rate);
    END IF;
    RETURN NEXT;
END $$;

CREATE FUNCTION append_with_attempts(
    _partition int, _epoch bigint, _follows bigint, _facts bytea,
    _seqs bigint[], _ats bigint[], _groups text[], _kinds text[], _keys text[], _envelopes bytea[], _payloads bytea[],
    _ended bigint[], _ended_ats bigint[], _states text[], _attempts int[], _classes text[], _faults text[],
    _bodies bytea[], _reopened bigint[], _drained bigint[],
    _cost_ats bigint[], _operations text[], _claims bigint[], _nths smallint[], _limits text[], _shapes text[],
    _requested double precision[], _actual double precision[], _rates double precision[],
    _tried bigint[], _fences bigint[], _numbers int[], _tried_ats bigint[], _tried_ended bigint[], _tried_states text[],
    _external_ids text[], _tried_costs bigint[], _memos bytea[]
) RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT a.verdict, a.number INTO verdict, number
    FROM append_with_costs(_partition, _epoch, _follows, _facts, _seqs, _ats, _groups, _kinds, _keys, _envelopes,
        _payloads, _ended, _ended_ats, _states, _attempts, _classes, _faults, _bodies, _reopened, _drained, _cost_ats,
        _operations, _claims, _nths, _limits, _shapes, _requested, _actual, _rates) AS a;
    IF verdict = 'ok' THEN
        INSERT INTO attempts AS a
        SELECT _partition, new.*
        FROM unnest(_tried, _fences, _numbers, _tried_ats, _tried_ended, _tried_states, _external_ids, _tried_costs,
            _memos) AS new
        ON CONFLICT ON CONSTRAINT attempts_pkey DO UPDATE SET number = excluded.number, at = excluded.at,
            ended_at = excluded.ended_at, state = excluded.state,
            external_id = CASE WHEN excluded.ended_at IS NULL THEN excluded.external_id
                ELSE coalesce(excluded.external_id, a.external_id) END,
            cost = CASE WHEN excluded.ended_at IS NULL THEN excluded.cost ELSE coalesce(excluded.cost, a.cost) END,
            memo = CASE WHEN excluded.ended_at IS NOT NULL AND excluded.memo = '' THEN a.memo ELSE excluded.memo END;
    END IF;
    RETURN NEXT;
END $$;

-- Stores the state of limits, each replacing the previous state.
CREATE OR REPLACE FUNCTION keep_standings(
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
        (name, partition, upstream, kind, capacity, refill_rate, level, source, closed_until, updated_at)
    SELECT new.name, _partition, split_part(new.name, '/', 1), new.sort, new.capacity, new.rate, new.level, new.source,
        new.closed, new.updated
    FROM unnest(_names, _sorts, _capacities, _rates, _levels, _sources, _closed, _updated)
        AS new (name, sort, capacity, rate, level, source, closed, updated)
    ON CONFLICT (name, partition) DO UPDATE SET kind = excluded.kind, capacity = excluded.capacity,
        refill_rate = excluded.refill_rate, level = excluded.level, source = excluded.source,
        closed_until = excluded.closed_until, updated_at = excluded.updated_at;
    RETURN QUERY SELECT 'ok', 0::bigint;
END $$;

-- Removes the state of limits that are gone: those with these names, and those last stored before.
CREATE FUNCTION remove_standings(_partition int, _epoch bigint, _names text[], _before bigint)
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
    gone bigint;
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    DELETE FROM rate_limit_buckets AS b
    WHERE b.partition = _partition AND (b.name = ANY (_names) OR b.updated_at < _before);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN QUERY SELECT 'ok', gone;
END $$;
