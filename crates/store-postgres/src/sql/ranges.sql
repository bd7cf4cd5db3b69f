-- Operations and results are in one table for each partition, split into one table for each range
-- of seqs, so that what retention no longer keeps can be dropped as a whole. Tables are created on
-- their own and then attached, which blocks neither appends nor readers.

CREATE FUNCTION range_len() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT 1000000::bigint $$;

-- Creates the tables for a seq of a partition; does nothing when they exist.
CREATE FUNCTION make_room(_partition int, _seq bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place bigint := _seq / range_len();
    family text;
    parent text;
    leaf text;
BEGIN
    IF to_regclass(format('results_%s_%s', _partition, place)) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('tidegate room in ' || current_schema(), 0));
    FOREACH family IN ARRAY ARRAY['operations', 'results'] LOOP
        parent := format('%s_%s', family, _partition);
        leaf := format('%s_%s', parent, place);
        IF to_regclass(parent) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %I) PARTITION BY RANGE (seq)', parent, family);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)', family, parent, _partition);
        END IF;
        IF to_regclass(leaf) IS NULL THEN
            EXECUTE format('CREATE TABLE %I (LIKE %I)', leaf, parent);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, leaf,
                place * range_len(),
                CASE WHEN place < 9223372036854775807 / range_len() THEN ((place + 1) * range_len())::text
                    ELSE 'MAXVALUE' END);
        END IF;
    END LOOP;
END $$;

-- The last stored seq of a partition.
CREATE FUNCTION last_seq(_partition int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
BEGIN
    SELECT o.seq INTO last FROM operations AS o WHERE o.partition = _partition ORDER BY o.seq DESC LIMIT 1;
    RETURN coalesce(last, 0);
END $$;

-- Drops the tables of a partition's first range when everything in it ended before the cutoff and a
-- later range is in use. During the check, nothing in that range can run again. It gives up soon
-- when another session uses those tables.
CREATE FUNCTION drop_range(_partition int, _epoch bigint, _cut bigint)
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
    RETURN QUERY SELECT 'ok', gone;
END $$;
