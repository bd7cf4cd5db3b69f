-- Leases and windows that any process may touch. Each function is one atomic step: it locks its
-- rows, reads the clock, and decides like the pure function of the same name.

CREATE FUNCTION acquire_lease(_name text, _ttl bigint, _clock bigint)
RETURNS TABLE (is_held boolean, fence bigint, until bigint) LANGUAGE plpgsql AS $$
DECLARE
    known leases%ROWTYPE;
    now numeric;
BEGIN
    INSERT INTO leases VALUES (_name, 0, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO known FROM leases AS l WHERE l.name = _name FOR UPDATE;
    now := moment(_clock);
    IF unsigned(known.until) > now THEN
        RETURN QUERY SELECT false, known.fence, known.until;
    ELSE
        RETURN QUERY UPDATE leases AS l SET fence = l.fence + 1, until = bits(later(now, _ttl))
            WHERE l.name = _name RETURNING true, l.fence, l.until;
    END IF;
END $$;

-- Until `ttl` from now on, or, without one, until now.
CREATE FUNCTION keep_lease(_name text, _fence bigint, _ttl bigint, _clock bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    known leases%ROWTYPE;
    now numeric;
    kept bigint;
BEGIN
    SELECT * INTO known FROM leases AS l WHERE l.name = _name FOR UPDATE;
    now := moment(_clock);
    IF known.fence IS DISTINCT FROM _fence OR unsigned(known.until) <= now THEN
        RETURN NULL;
    END IF;
    kept := bits(CASE WHEN _ttl IS NULL THEN now ELSE later(now, _ttl) END);
    UPDATE leases AS l SET until = kept WHERE l.name = _name;
    RETURN kept;
END $$;

CREATE FUNCTION open_window(_key text, _level int, _ttl bigint, _grace bigint, _clock bigint)
RETURNS TABLE (asks boolean, level int, until bigint) LANGUAGE plpgsql AS $$
DECLARE
    known windows%ROWTYPE;
    now numeric;
BEGIN
    DELETE FROM windows AS w WHERE w.key IN (
        SELECT old.key FROM windows AS old
        WHERE old.until >= 0 AND old.until <= bits(least(moment(_clock), 9223372036854775807)) - _grace
        ORDER BY old.until LIMIT 2 FOR UPDATE SKIP LOCKED);
    LOOP
        now := moment(_clock);
        INSERT INTO windows VALUES (_key, _level, bits(later(now, _ttl))) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN QUERY SELECT true, _level, bits(later(now, _ttl));
            RETURN;
        END IF;
        SELECT * INTO known FROM windows AS w WHERE w.key = _key FOR UPDATE;
        -- It may have been swept in between.
        EXIT WHEN FOUND;
    END LOOP;
    now := moment(_clock);
    IF unsigned(known.until) > now AND known.level >= _level THEN
        RETURN QUERY SELECT false, known.level, known.until;
    ELSE
        RETURN QUERY UPDATE windows AS w SET level = _level, until = bits(later(now, _ttl))
            WHERE w.key = _key RETURNING true, w.level, w.until;
    END IF;
END $$;
