-- The steps of a partition's log. Every step of an owner reads the partition's row FOR KEY SHARE
-- and keeps that lock to its end; only a new owner takes the row FOR UPDATE, so it waits for steps
-- in progress and no later step of an older owner gets through. Renewing changes no key and waits
-- for no other step. A refusal is a value: nothing was written.

CREATE FUNCTION own(_partition int, _node text, _ttl bigint, _clock bigint)
RETURNS TABLE (verdict text, epoch bigint, until bigint, holder text, time_left bigint) LANGUAGE plpgsql AS $$
DECLARE
    known partitions%ROWTYPE;
    now numeric;
BEGIN
    INSERT INTO partitions VALUES (_partition, 0, NULL, 0, 0, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO known FROM partitions AS p WHERE p.partition = _partition FOR UPDATE;
    now := moment(_clock);
    IF known.node IS NOT NULL AND known.node <> _node AND unsigned(known.until) > now THEN
        RETURN QUERY SELECT 'held', known.epoch, known.until, known.node, bits(unsigned(known.until) - now);
        RETURN;
    END IF;
    RETURN QUERY UPDATE partitions AS p SET epoch = p.epoch + 1, node = _node, until = bits(later(now, _ttl))
        WHERE p.partition = _partition RETURNING 'ok', p.epoch, p.until, p.node, 0::bigint;
END $$;

CREATE FUNCTION renew(_partition int, _epoch bigint, _ttl bigint, _clock bigint)
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    known partitions%ROWTYPE;
BEGIN
    SELECT * INTO known FROM partitions AS p WHERE p.partition = _partition FOR NO KEY UPDATE;
    IF known.epoch IS DISTINCT FROM _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', coalesce(known.epoch, 0);
    ELSIF known.node IS NULL THEN
        RETURN QUERY SELECT 'released', known.epoch;
    ELSE
        RETURN QUERY UPDATE partitions AS p SET until = bits(later(moment(_clock), _ttl))
            WHERE p.partition = _partition RETURNING 'ok', p.until;
    END IF;
END $$;

-- The newest epoch, and a lock on it until the end of the step.
CREATE FUNCTION hold(_partition int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    SELECT p.epoch INTO newest FROM partitions AS p WHERE p.partition = _partition FOR KEY SHARE;
    RETURN coalesce(newest, 0);
END $$;

-- The number of the last append. A trim always leaves the newest row, so that the numbers never
-- restart.
CREATE FUNCTION last_append(_partition int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
BEGIN
    SELECT l.lsn INTO last FROM log AS l WHERE l.partition = _partition ORDER BY l.lsn DESC LIMIT 1;
    RETURN coalesce(last, 0);
END $$;

CREATE FUNCTION append(
    _partition int, _epoch bigint, _follows bigint, _facts bytea,
    _seqs bigint[], _ats bigint[], _groups text[], _kinds text[], _keys text[], _envelopes bytea[], _payloads bytea[],
    _ended bigint[], _ended_ats bigint[], _states text[], _attempts int[], _classes text[], _faults text[],
    _bodies bytea[], _reopened bigint[], _drained bigint[]
) RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
    last bigint;
    waiting bigint;
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    last := last_append(_partition);
    IF _follows <> last THEN
        RETURN QUERY SELECT 'follows', last;
        RETURN;
    END IF;
    IF cardinality(_drained) > 0 THEN
        SELECT count(*) INTO waiting FROM (
            SELECT FROM outbox AS o WHERE o.partition = _partition AND o.id = ANY (_drained) ORDER BY o.id FOR UPDATE
        ) AS locked;
        IF waiting <> cardinality(_drained) THEN
            RETURN QUERY SELECT 'drained', cardinality(_drained) - waiting;
            RETURN;
        END IF;
        DELETE FROM outbox AS o WHERE o.partition = _partition AND o.id = ANY (_drained);
    END IF;
    INSERT INTO log VALUES (_partition, last + 1, _facts);
    IF cardinality(_reopened) > 0 THEN
        DELETE FROM results AS r WHERE r.partition = _partition AND r.seq = ANY (_reopened);
    END IF;
    IF cardinality(_seqs) > 0 THEN
        INSERT INTO operations
        SELECT _partition, new.* FROM unnest(_seqs, _ats, _groups, _kinds, _keys, _envelopes, _payloads) AS new;
    END IF;
    IF cardinality(_ended) > 0 THEN
        INSERT INTO results
        SELECT _partition, new.* FROM unnest(_ended, _ended_ats, _states, _attempts, _classes, _faults, _bodies) AS new;
    END IF;
    RETURN QUERY SELECT 'ok', last + 1;
END $$;

-- A snapshot has three steps: it begins, its parts are written, and then it replaces what came
-- before. Until the last step it is not visible.
CREATE FUNCTION begin_snapshot(_partition int, _epoch bigint, _upto bigint)
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
    last bigint;
    before bigint;
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    last := last_append(_partition);
    SELECT p.snapshot INTO before FROM partitions AS p WHERE p.partition = _partition;
    IF _upto > last THEN
        RETURN QUERY SELECT 'ahead', last;
    ELSIF _upto < before THEN
        RETURN QUERY SELECT 'older', before;
    ELSE
        RETURN QUERY SELECT 'ok', nextval('snapshot_versions');
    END IF;
END $$;

CREATE FUNCTION add_parts(_partition int, _epoch bigint, _version bigint, _first int, _parts bytea[])
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    INSERT INTO snapshots
    SELECT _partition, _version, _first + new.place::int - 1, new.part
    FROM unnest(_parts) WITH ORDINALITY AS new (part, place);
    RETURN QUERY SELECT 'ok', 0::bigint;
END $$;

CREATE FUNCTION finish_snapshot(_partition int, _epoch bigint, _version bigint, _upto bigint)
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    known partitions%ROWTYPE;
BEGIN
    SELECT * INTO known FROM partitions AS p WHERE p.partition = _partition FOR NO KEY UPDATE;
    IF known.epoch IS DISTINCT FROM _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', coalesce(known.epoch, 0);
    ELSIF _upto < known.snapshot OR _version < known.version THEN
        RETURN QUERY SELECT 'older', known.snapshot;
    ELSE
        UPDATE partitions AS p SET snapshot = _upto, version = _version WHERE p.partition = _partition;
        RETURN QUERY SELECT 'ok', 0::bigint;
    END IF;
END $$;

-- All three steps at once, for a small snapshot.
CREATE FUNCTION put_snapshot(_partition int, _epoch bigint, _upto bigint, _parts bytea[])
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    version bigint;
BEGIN
    SELECT b.verdict, b.number INTO verdict, number FROM begin_snapshot(_partition, _epoch, _upto) AS b;
    IF verdict <> 'ok' THEN
        RETURN NEXT;
        RETURN;
    END IF;
    version := number;
    PERFORM add_parts(_partition, _epoch, version, 0, _parts);
    RETURN QUERY SELECT f.verdict, f.number FROM finish_snapshot(_partition, _epoch, version, _upto) AS f;
END $$;

-- Removes a bounded part of what the newest snapshot replaced; returns the number of removed rows.
CREATE FUNCTION trim_log(_partition int, _most int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    known partitions%ROWTYPE;
    gone bigint;
    more bigint;
BEGIN
    SELECT * INTO known FROM partitions AS p WHERE p.partition = _partition;
    DELETE FROM log AS l WHERE l.partition = _partition AND l.lsn IN (
        SELECT old.lsn FROM log AS old WHERE old.partition = _partition AND old.lsn < known.snapshot
        ORDER BY old.lsn LIMIT _most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM snapshots AS s WHERE s.partition = _partition AND (s.version, s.part) IN (
        SELECT old.version, old.part FROM snapshots AS old
        WHERE old.partition = _partition AND old.version < known.version ORDER BY old.version, old.part LIMIT _most);
    GET DIAGNOSTICS more = ROW_COUNT;
    RETURN gone + more;
END $$;

-- Scans some results after a seq, in order, and removes those that ended before the cutoff, with
-- their operations. In the ranges before the newest they are kept a while longer, so that a range
-- can be dropped as a whole. Rows locked by an append are left for the next time, so that neither
-- ever waits for the other.
CREATE FUNCTION sweep(_partition int, _epoch bigint, _cut bigint, _most int, _after bigint, _looked int, _grace bigint)
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
    RETURN QUERY SELECT 'ok', cardinality(gone)::bigint, coalesce(last, _after), seen < _looked;
END $$;
