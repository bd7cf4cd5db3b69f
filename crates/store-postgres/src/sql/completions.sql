-- Part of format 7: an operation may say how its job ends. Only the checks on submission change.

-- Returns a sentence about what is wrong with an operation, as far as that can be checked here;
-- null when it looks valid.
CREATE OR REPLACE FUNCTION problem_of(_operation json) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    names CONSTANT text[] := ARRAY['kind', 'upstream', 'group', 'request', 'dedupe_key', 'cost', 'max_attempts',
        'deadline_ms', 'delay_ms', 'priority', 'on_unknown', 'on_failure', 'deployment_id', 'deadline_at',
        'completion'];
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
