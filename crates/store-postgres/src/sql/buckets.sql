-- Stand-alone buckets. The arithmetic is exact: numeric where 64 bits could overflow, and the
-- remainder of a refill is carried.

-- The level of a bucket at a moment. Before the bucket's own time nothing is refilled.
CREATE FUNCTION refreshed(_bucket rate_limit_buckets, _now numeric) RETURNS rate_limit_buckets
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    parts numeric;
    tokens numeric;
BEGIN
    IF _now <= unsigned(_bucket.at) THEN
        RETURN _bucket;
    END IF;
    parts := (_now - unsigned(_bucket.at)) * unsigned(_bucket.refill_per_s) + unsigned(_bucket.carry);
    tokens := unsigned(_bucket.tokens) + div(parts, 1000000);
    _bucket.at := bits(_now);
    IF tokens >= unsigned(_bucket.capacity) THEN
        _bucket.tokens := _bucket.capacity;
        _bucket.carry := 0;
    ELSE
        _bucket.tokens := bits(tokens);
        _bucket.carry := bits(mod(parts, 1000000));
    END IF;
    RETURN _bucket;
END $$;

-- How long until that much can be taken from a refreshed bucket; its capacity is sufficient.
CREATE FUNCTION wait_for(_bucket rate_limit_buckets, _cost numeric, _now numeric) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    reached numeric;
    missing numeric;
BEGIN
    IF unsigned(_bucket.tokens) >= _cost THEN
        reached := unsigned(_bucket.at);
    ELSIF _bucket.refill_per_s = 0 THEN
        reached := 18446744073709551615;
    ELSE
        missing := (_cost - unsigned(_bucket.tokens)) * 1000000 - unsigned(_bucket.carry);
        reached := unsigned(_bucket.at)
            + div(greatest(missing, 0) + unsigned(_bucket.refill_per_s) - 1, unsigned(_bucket.refill_per_s));
    END IF;
    RETURN greatest(least(reached, 18446744073709551615) - _now, 0);
END $$;

-- Takes from every bucket, or from none. Rows are locked in the order of their names, whatever the
-- requested order, so that two callers never deadlock.
CREATE FUNCTION reserve(_names text[], _costs bigint[], _capacities bigint[], _rates bigint[], _clock bigint)
RETURNS TABLE (verdict text, number bigint, remaining bigint[]) LANGUAGE plpgsql AS $$
DECLARE
    now numeric := moment(_clock);
    bucket rate_limit_buckets;
    buckets rate_limit_buckets[] := '{}';
    never bigint;
    delay numeric := 0;
BEGIN
    INSERT INTO rate_limit_buckets
    SELECT want.name, want.capacity, 0, bits(now), want.capacity, want.rate
    FROM unnest(_names, _capacities, _rates) AS want (name, capacity, rate) ORDER BY want.name COLLATE "C"
    ON CONFLICT DO NOTHING;
    PERFORM 1 FROM rate_limit_buckets AS b WHERE b.name = ANY (_names) ORDER BY b.name FOR UPDATE;
    now := moment(_clock);
    FOR place IN 1 .. coalesce(cardinality(_names), 0) LOOP
        SELECT * INTO bucket FROM rate_limit_buckets AS b WHERE b.name = _names[place];
        bucket := refreshed(bucket, now);
        bucket.capacity := _capacities[place];
        bucket.refill_per_s := _rates[place];
        IF unsigned(bucket.tokens) >= unsigned(bucket.capacity) THEN
            bucket.tokens := bucket.capacity;
            bucket.carry := 0;
        END IF;
        IF unsigned(_costs[place]) > unsigned(bucket.capacity) THEN
            never := coalesce(never, place - 1);
        ELSE
            delay := greatest(delay, wait_for(bucket, unsigned(_costs[place]), now));
        END IF;
        buckets := buckets || bucket;
    END LOOP;
    remaining := '{}';
    FOR place IN 1 .. coalesce(cardinality(_names), 0) LOOP
        bucket := buckets[place];
        IF never IS NULL AND delay = 0 THEN
            bucket.tokens := bits(unsigned(bucket.tokens) - unsigned(_costs[place]));
        END IF;
        UPDATE rate_limit_buckets AS b SET tokens = bucket.tokens, carry = bucket.carry, at = bucket.at,
            capacity = bucket.capacity, refill_per_s = bucket.refill_per_s
        WHERE b.name = bucket.name AND b IS DISTINCT FROM bucket;
        remaining := remaining || bucket.tokens;
    END LOOP;
    verdict := CASE WHEN never IS NOT NULL THEN 'never' WHEN delay > 0 THEN 'wait' ELSE 'granted' END;
    number := coalesce(never, bits(delay));
    RETURN NEXT;
END $$;

CREATE FUNCTION settle_bucket(_name text, _reserved bigint, _actual bigint, _clock bigint)
RETURNS SETOF rate_limit_buckets LANGUAGE plpgsql AS $$
DECLARE
    bucket rate_limit_buckets;
    change numeric := unsigned(_reserved) - unsigned(_actual);
    tokens numeric;
BEGIN
    SELECT * INTO bucket FROM rate_limit_buckets AS b WHERE b.name = _name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    bucket := refreshed(bucket, moment(_clock));
    tokens := greatest(unsigned(bucket.tokens) + change, 0);
    IF change >= 0 AND tokens >= unsigned(bucket.capacity) THEN
        tokens := unsigned(bucket.capacity);
        bucket.carry := 0;
    END IF;
    bucket.tokens := bits(tokens);
    UPDATE rate_limit_buckets AS b SET tokens = bucket.tokens, carry = bucket.carry, at = bucket.at WHERE b.name = _name;
    RETURN NEXT bucket;
END $$;
