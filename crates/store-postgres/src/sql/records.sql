-- Format 2: idempotency records that identify their holder by a token. Format 1 had another layout
-- and never filled it, so nothing is lost, and no older program misses them. Nothing that changes
-- is indexed.

DO $$ BEGIN
    IF to_regclass('records') IS NOT NULL THEN
        DROP TABLE records;
        DROP FUNCTION claim_record(text, bytea, bigint, bigint, bigint);
    END IF;
END $$;

CREATE TABLE records (
    key text COLLATE "C" PRIMARY KEY,
    fingerprint bytea NOT NULL,
    token bytea NOT NULL,
    created bigint NOT NULL,
    expires bigint NOT NULL,
    holds boolean NOT NULL,
    until bigint,
    answer bytea
) WITH (fillfactor = 70);
CREATE INDEX records_ending ON records (expires) WHERE expires >= 0;

-- Whether it is still live: it has not expired, or a request is in flight.
CREATE FUNCTION is_live(_record records, _now numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT unsigned(_record.expires) > _now OR (_record.answer IS NULL AND unsigned(_record.until) > _now)
$$;

CREATE FUNCTION claim_record(
    _key text, _fingerprint bytea, _token bytea, _lease bigint, _ttl bigint, _holds boolean, _clock bigint
) RETURNS TABLE (verdict text, until bigint, answer bytea) LANGUAGE plpgsql AS $$
DECLARE
    known records%ROWTYPE;
    now numeric;
BEGIN
    LOOP
        now := moment(_clock);
        INSERT INTO records VALUES (
            _key, _fingerprint, _token, bits(now), bits(later(now, _ttl)), _holds, bits(later(now, _lease)), NULL
        ) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN QUERY SELECT 'yours', 0::bigint, NULL::bytea;
            RETURN;
        END IF;
        SELECT * INTO known FROM records AS r WHERE r.key = _key FOR UPDATE;
        -- The previous holder may have released it in between.
        EXIT WHEN FOUND;
    END LOOP;
    now := moment(_clock);
    IF NOT is_live(known, now) THEN
        UPDATE records AS r SET fingerprint = _fingerprint, token = _token, created = bits(now),
            expires = bits(later(now, _ttl)), holds = _holds, until = bits(later(now, _lease)), answer = NULL
            WHERE r.key = _key;
        RETURN QUERY SELECT 'yours', 0::bigint, NULL::bytea;
    ELSIF known.fingerprint <> _fingerprint THEN
        RETURN QUERY SELECT 'conflict', 0::bigint, NULL::bytea;
    ELSIF known.answer IS NOT NULL THEN
        RETURN QUERY SELECT 'completed', 0::bigint, known.answer;
    ELSIF known.token <> _token AND unsigned(known.until) > now THEN
        RETURN QUERY SELECT 'processing', known.until, NULL::bytea;
    ELSIF known.token <> _token AND known.holds THEN
        RETURN QUERY SELECT 'unknown', 0::bigint, NULL::bytea;
    ELSE
        UPDATE records AS r SET token = _token, holds = _holds, until = bits(later(now, _lease)) WHERE r.key = _key;
        RETURN QUERY SELECT CASE WHEN known.token = _token THEN 'yours' ELSE 'taken over' END,
            0::bigint, NULL::bytea;
    END IF;
END $$;

-- Expired records count as absent, and are left to the sweep.
CREATE FUNCTION forget_record(_key text, _is_answer boolean, _clock bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    known records%ROWTYPE;
BEGIN
    SELECT * INTO known FROM records AS r WHERE r.key = _key FOR UPDATE;
    IF NOT FOUND OR NOT is_live(known, moment(_clock)) THEN
        RETURN 'absent';
    ELSIF (known.answer IS NOT NULL) <> _is_answer THEN
        RETURN 'otherwise';
    END IF;
    DELETE FROM records AS r WHERE r.key = _key;
    RETURN 'gone';
END $$;
