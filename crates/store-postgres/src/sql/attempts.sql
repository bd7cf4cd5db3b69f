-- Format 7: attempts whose job ends elsewhere. Costs are in millionths of what the executor counts
-- in, times in microseconds since 1970.

CREATE TABLE attempts (
    partition int NOT NULL,
    seq bigint NOT NULL,
    fence bigint NOT NULL,
    number int NOT NULL,
    at bigint NOT NULL,
    ended_at bigint,
    state text COLLATE "C" NOT NULL,
    external_id text COLLATE "C",
    cost bigint,
    memo bytea NOT NULL,
    PRIMARY KEY (partition, seq, fence)
);

COMMENT ON TABLE attempts IS 'Attempts whose job was accepted and ended, or ends, elsewhere';
COMMENT ON COLUMN attempts.external_id IS 'The id by which the upstream knows the job';
COMMENT ON COLUMN attempts.cost IS 'What it may have cost';

-- An append with attempts and costs. Most appends have neither, and do not use this function.
CREATE FUNCTION append_with_attempts(
    _partition int, _epoch bigint, _follows bigint, _facts bytea,
    _seqs bigint[], _ats bigint[], _groups text[], _kinds text[], _keys text[], _envelopes bytea[], _payloads bytea[],
    _ended bigint[], _ended_ats bigint[], _states text[], _attempts int[], _classes text[], _faults text[],
    _bodies bytea[], _reopened bigint[], _drained bigint[],
    _cost_ats bigint[], _operations text[], _claims bigint[], _nths smallint[], _limits text[], _shapes text[],
    _requested double precision[], _actual double precision[],
    _tried bigint[], _fences bigint[], _numbers int[], _tried_ats bigint[], _tried_ended bigint[], _tried_states text[],
    _external_ids text[], _tried_costs bigint[], _memos bytea[]
) RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
BEGIN
    SELECT a.verdict, a.number INTO verdict, number
    FROM append_with_costs(_partition, _epoch, _follows, _facts, _seqs, _ats, _groups, _kinds, _keys, _envelopes,
        _payloads, _ended, _ended_ats, _states, _attempts, _classes, _faults, _bodies, _reopened, _drained, _cost_ats,
        _operations, _claims, _nths, _limits, _shapes, _requested, _actual) AS a;
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

-- Attempts go with their operations.
CREATE OR REPLACE FUNCTION sweep(_partition int, _epoch bigint, _cut bigint, _most int, _after bigint, _looked int, _grace bigint)
RETURNS TABLE (verdict text, number bigint, reached bigint, is_over boolean) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
    range_from bigint := last_seq(_partition) / range_len() * range_len();
    old bigint[];
    gone bigint[];
    last bigint;
    seen bigint;
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest, 0::bigint, true;
        RETURN;
    END IF;
    SELECT coalesce(array_agg(s.seq ORDER BY s.seq) FILTER (
            WHERE s.at >= 0 AND s.at < _cut - CASE WHEN s.seq < range_from THEN _grace ELSE 0 END), '{}'),
        max(s.seq), count(*)
    INTO old, last, seen
    FROM (
        SELECT r.seq, r.at FROM results AS r WHERE r.partition = _partition AND r.seq > _after
        ORDER BY r.seq LIMIT _looked
    ) AS s;
    IF cardinality(old) > _most THEN
        old := old[1:_most];
        last := old[_most];
        seen := _looked;
    END IF;
    SELECT coalesce(array_agg(s.seq), '{}') INTO gone FROM (
        SELECT r.seq FROM results AS r
        WHERE r.partition = _partition AND r.seq = ANY (old) AND r.at >= 0 AND r.at < _cut FOR UPDATE SKIP LOCKED
    ) AS s;
    DELETE FROM results AS r WHERE r.partition = _partition AND r.seq = ANY (gone);
    DELETE FROM operations AS o WHERE o.partition = _partition AND o.seq = ANY (gone);
    DELETE FROM attempts AS a WHERE a.partition = _partition AND a.seq = ANY (gone);
    RETURN QUERY SELECT 'ok', cardinality(gone)::bigint, coalesce(last, _after), seen < _looked;
END $$;

CREATE OR REPLACE FUNCTION drop_range(_partition int, _epoch bigint, _cut bigint)
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
    place bigint;
    after bigint;
    youngest bigint;
    is_kept boolean;
    gone bigint;
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    SELECT min(split_part(c.relname, '_', 3)::bigint) INTO place
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = to_regclass(format('results_%s', _partition));
    after := (place + 1) * range_len();
    IF place IS NULL OR last_seq(_partition) < after THEN
        RETURN QUERY SELECT 'none', 0::bigint;
        RETURN;
    END IF;
    -- Mostly the last operation to be accepted ended last, so this saves the full scan.
    SELECT r.at INTO youngest FROM results AS r WHERE r.partition = _partition AND r.seq < after
    ORDER BY r.seq DESC LIMIT 1;
    IF youngest < 0 OR youngest >= _cut THEN
        RETURN QUERY SELECT 'none', 0::bigint;
        RETURN;
    END IF;
    -- This one query scans all of two tables; they are read as a whole.
    PERFORM set_config('lock_timeout', '200ms', true), set_config('enable_hashjoin', 'on', true),
        set_config('enable_seqscan', 'on', true);
    EXECUTE format('LOCK TABLE operations_%1$s_%2$s, results_%1$s_%2$s IN SHARE MODE', _partition, place);
    EXECUTE format('SELECT EXISTS (SELECT FROM results_%1$s_%2$s WHERE at < 0 OR at >= $1)
        OR EXISTS (SELECT FROM operations_%1$s_%2$s AS o
            WHERE NOT EXISTS (SELECT FROM results_%1$s_%2$s AS r WHERE r.partition = o.partition AND r.seq = o.seq))',
        _partition, place) INTO is_kept USING _cut;
    IF is_kept THEN
        RETURN QUERY SELECT 'none', 0::bigint;
        RETURN;
    END IF;
    EXECUTE format('SELECT count(*) FROM results_%s_%s', _partition, place) INTO gone;
    EXECUTE format('DROP TABLE operations_%1$s_%2$s, results_%1$s_%2$s', _partition, place);
    DELETE FROM attempts AS a WHERE a.partition = _partition AND a.seq < after;
    RETURN QUERY SELECT 'ok', gone;
END $$;
