-- The outbox: operations that applications submit inside their own transactions. A row waits here
-- from the commit of such a transaction until an append of the partition's owner accepts it and
-- removes it, in one step. There is no cursor: ids may become visible out of order, and whoever
-- drains reads the smallest existing ones.

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY,
    partition int NOT NULL,
    at bigint NOT NULL,
    len int NOT NULL,
    operation json NOT NULL,
    PRIMARY KEY (partition, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Submitted operations that cannot be accepted, for people to look at.
CREATE TABLE outbox_refused (
    id bigint PRIMARY KEY,
    partition int NOT NULL,
    at bigint NOT NULL,
    refused_at bigint NOT NULL,
    code text COLLATE "C" NOT NULL,
    problem text NOT NULL,
    operation json NOT NULL
);

-- The upstreams that nodes have been started with. One that was removed from a configuration stays
-- here.
CREATE TABLE upstreams (name text COLLATE "C" PRIMARY KEY, is_spread boolean NOT NULL);

-- A SHA-256 over parts, each preceded by its length, the same as in the program.
CREATE FUNCTION fingerprint(VARIADIC _parts text[]) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256(string_agg(int8send(octet_length(part.bytes)) || part.bytes, '' ORDER BY part.place))
    FROM (
        SELECT convert_to(given.part, 'UTF8') AS bytes, given.place
        FROM unnest(_parts) WITH ORDINALITY AS given (part, place)
    ) AS part
$$;

-- The partition of a key.
CREATE FUNCTION place(_key text, _partitions bigint) RETURNS int LANGUAGE sql STABLE AS $$
    SELECT mod(unsigned(('x' || encode(substr(fingerprint('partition', _key), 1, 8), 'hex'))::bit(64)::bigint),
        greatest(_partitions, 1))::int
$$;

-- The partition of an operation: that of its upstream, or of its group where the upstream is
-- spread.
CREATE FUNCTION place_of(_upstream text, _group text, _is_spread boolean, _partitions bigint)
RETURNS int LANGUAGE sql STABLE AS $$
    SELECT place(CASE WHEN _is_spread THEN 'group ' || _group ELSE 'upstream ' || _upstream END, _partitions)
$$;

-- The channel of a topic for hints between nodes, the same as in the program.
CREATE FUNCTION hint_channel(_topic text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'tidegate_' || encode(substr(fingerprint('hints', current_schema(), _topic), 1, 16), 'hex')
$$;

-- Returns a sentence about what is wrong with an operation, as far as that can be checked here;
-- null when it looks valid.
CREATE FUNCTION problem_of(_operation json) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    names CONSTANT text[] := ARRAY['kind', 'upstream', 'group', 'request', 'dedupe_key', 'cost', 'max_attempts',
        'deadline_ms', 'delay_ms', 'priority', 'on_unknown', 'on_failure', 'deployment_id'];
    wrong text;
    kind text;
BEGIN
    IF json_typeof(_operation) <> 'object' THEN
        RETURN 'An operation is an object in braces, not of the type ' || json_typeof(_operation) || '.';
    END IF;
    SELECT given INTO wrong FROM json_object_keys(_operation) AS given WHERE given <> ALL (names) LIMIT 1;
    IF FOUND THEN
        RETURN format('There is no field "%s" in an operation.', left(wrong, 64));
    END IF;
    SELECT given INTO wrong FROM json_object_keys(_operation) AS given GROUP BY given HAVING count(*) > 1 LIMIT 1;
    IF FOUND THEN
        RETURN format('The field "%s" is there twice.', wrong);
    END IF;
    FOREACH wrong IN ARRAY ARRAY['upstream', 'group', 'request', 'dedupe_key'] LOOP
        kind := json_typeof(_operation -> wrong);
        IF wrong = 'dedupe_key' AND coalesce(kind, 'null') = 'null' THEN
            CONTINUE;
        ELSIF coalesce(kind, 'null') = 'null' THEN
            RETURN format('The field "%s" is missing.', wrong);
        ELSIF wrong = 'request' AND kind <> 'object' THEN
            RETURN 'The field "request" must be an object.';
        ELSIF wrong <> 'request' AND kind <> 'string' THEN
            RETURN format('The field "%s" must be a text.', wrong);
        END IF;
    END LOOP;
    IF octet_length(convert_to(_operation ->> 'group', 'UTF8')) NOT BETWEEN 1 AND 255 THEN
        RETURN 'The field "group" must be 1 to 255 bytes long.';
    ELSIF octet_length(convert_to(_operation ->> 'dedupe_key', 'UTF8')) NOT BETWEEN 1 AND 512 THEN
        RETURN 'The field "dedupe_key" must be 1 to 512 bytes long.';
    END IF;
    RETURN NULL;
END $$;

-- Submits an operation with the caller's transaction; returns its number in the outbox. Mistakes
-- are reported at once, so that the caller's transaction fails here and not later.
CREATE FUNCTION enqueue(_operation json) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    len_max CONSTANT int := 1114112;
    -- An escaped zero, which no text here can hold, with an even number of backslashes before it.
    zero CONSTANT text := E'(^|[^\\\\])(\\\\\\\\)*\\\\u0000';
    len CONSTANT int := octet_length(_operation::text);
    problem text;
    partitions bigint;
    spread boolean;
    home int;
    number bigint;
BEGIN
    IF _operation IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'An operation is an object in braces, not null.';
    ELSIF len > len_max THEN
        RAISE EXCEPTION USING ERRCODE = 'program_limit_exceeded',
            MESSAGE = format('The operation is %s bytes long; the most is %s.', len, len_max);
    ELSIF position(E'\\u0000' IN _operation::text) > 0 AND _operation::text ~ zero THEN
        RAISE EXCEPTION USING ERRCODE = 'untranslatable_character',
            MESSAGE = E'An operation that is handed in here cannot hold the character \\u0000.';
    END IF;
    problem := problem_of(_operation);
    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = problem;
    END IF;
    SELECT m.value INTO partitions FROM meta AS m WHERE m.name = 'partitions';
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('No Tidegate node has been started on the schema %s yet.', current_schema());
    END IF;
    SELECT u.is_spread INTO spread FROM upstreams AS u WHERE u.name = _operation ->> 'upstream';
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format(
            'There is no upstream "%s": no node was started with it.', left(_operation ->> 'upstream', 64));
    END IF;
    home := place_of(_operation ->> 'upstream', _operation ->> 'group', spread, partitions);
    INSERT INTO outbox (partition, at, len, operation) VALUES (home, bits(moment(NULL)), len, _operation)
        RETURNING id INTO number;
    PERFORM pg_notify(hint_channel('outbox'), home::text);
    RETURN number;
END $$;

-- It runs with the privileges of whoever created the schema, so that callers need none on the
-- tables. Its search path is fixed, and temporary tables come last in it: no caller can shadow
-- anything.
REVOKE ALL ON FUNCTION enqueue(json) FROM PUBLIC;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION enqueue(json) SET search_path = %I, pg_temp', current_schema());
END $$;

-- Moves a row that cannot be accepted to the refused rows. A missing row is no mistake: it was
-- moved before.
CREATE FUNCTION refuse_row(_partition int, _epoch bigint, _id bigint, _code text, _problem text, _clock bigint)
RETURNS TABLE (verdict text, number bigint) LANGUAGE plpgsql AS $$
DECLARE
    newest bigint := hold(_partition);
    moved bigint;
BEGIN
    IF newest <> _epoch OR _epoch = 0 THEN
        RETURN QUERY SELECT 'fenced', newest;
        RETURN;
    END IF;
    WITH gone AS (DELETE FROM outbox AS o WHERE o.partition = _partition AND o.id = _id RETURNING o.*)
    INSERT INTO outbox_refused
    SELECT gone.id, gone.partition, gone.at, bits(moment(_clock)), _code, _problem, gone.operation FROM gone;
    GET DIAGNOSTICS moved = ROW_COUNT;
    RETURN QUERY SELECT 'ok', moved;
END $$;

-- Records the upstreams that a node was started with. Rows that wait for one that is now spread, or
-- no longer is, get their new partition.
CREATE FUNCTION publish(_names text[], _spread boolean[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    partitions bigint;
    changed text[];
BEGIN
    SELECT coalesce(array_agg(u.name), '{}') INTO changed
    FROM unnest(_names, _spread) AS now (name, is_spread) JOIN upstreams AS u USING (name)
    WHERE u.is_spread <> now.is_spread;
    INSERT INTO upstreams AS u
    SELECT now.name, now.is_spread FROM unnest(_names, _spread) AS now (name, is_spread) ORDER BY now.name
    ON CONFLICT (name) DO UPDATE SET is_spread = excluded.is_spread WHERE u.is_spread <> excluded.is_spread;
    IF cardinality(changed) > 0 THEN
        SELECT m.value INTO partitions FROM meta AS m WHERE m.name = 'partitions';
        UPDATE outbox AS o
        SET partition = place_of(u.name, o.operation ->> 'group', u.is_spread, coalesce(partitions, 1))
        FROM upstreams AS u WHERE u.name = o.operation ->> 'upstream' AND u.name = ANY (changed);
    END IF;
END $$;
