-- Format 12: submission checks the type of every field, also of those inside the request, so that
-- the caller's transaction fails and not the operation afterwards. Only the checks change. Bounds
-- stay with the node that accepts the operation.

-- Returns a sentence about a name that an object does not have, or has twice; null when there is
-- none.
CREATE OR REPLACE FUNCTION name_problem(_object json, _place text, _names text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    wrong text;
BEGIN
    SELECT given INTO wrong FROM json_object_keys(_object) AS given WHERE given <> ALL (_names) LIMIT 1;
    IF FOUND THEN
        RETURN format('There is no field "%s%s" in an operation.', _place, left(wrong, 64));
    END IF;
    SELECT given INTO wrong FROM json_object_keys(_object) AS given GROUP BY given HAVING count(*) > 1 LIMIT 1;
    IF FOUND THEN
        RETURN format('The field "%s%s" is there twice.', _place, wrong);
    END IF;
    RETURN NULL;
END $$;

-- Returns a sentence about the type of a field; null when it is right. A field may be left out, or
-- null, unless its type ends in "!". Numbers with an exponent are left to the node.
CREATE OR REPLACE FUNCTION type_problem(_value json, _field text, _type text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    given CONSTANT text := coalesce(json_typeof(_value), 'null');
    wanted CONSTANT text := rtrim(_type, '!');
    inner_field text;
    inner_value json;
    problem text;
BEGIN
    IF given = 'null' THEN
        RETURN CASE WHEN _type <> wanted THEN format('The field "%s" is missing.', _field) END;
    END IF;
    CASE
        WHEN wanted = 'string' AND given = 'string' THEN RETURN NULL;
        WHEN wanted IN ('object', 'strings', 'numbers') AND given = 'object' THEN
            FOR inner_field, inner_value IN SELECT * FROM json_each(_value) LOOP
                EXIT WHEN wanted = 'object';
                inner_field := _field || '.' || left(inner_field, 64);
                problem := type_problem(inner_value, inner_field, rtrim(wanted, 's') || '!');
                IF problem IS NOT NULL THEN
                    RETURN problem;
                END IF;
            END LOOP;
            RETURN NULL;
        WHEN wanted = 'number' AND given = 'number' THEN
            IF _value #>> '{}' !~ '^-[0-9.]*[1-9]' AND _value #>> '{}' !~ '^[^eE]*[.][0-9]*[1-9][0-9]*$' THEN
                RETURN NULL;
            END IF;
        WHEN wanted LIKE 'one of %' AND given = 'string' THEN
            IF _value #>> '{}' = ANY (string_to_array(substr(wanted, 8), ', ')) THEN
                RETURN NULL;
            END IF;
        ELSE
    END CASE;
    RETURN format('The field "%s" must be %s.', _field, CASE wanted
        WHEN 'string' THEN 'a string'
        WHEN 'number' THEN 'a whole number of at least 0'
        WHEN 'object' THEN 'an object'
        WHEN 'strings' THEN 'an object of names and strings'
        WHEN 'numbers' THEN 'an object of limits and whole numbers'
        ELSE wanted
    END);
END $$;

-- Returns a sentence about what is wrong with an operation, as far as that can be checked here;
-- null when it looks valid.
CREATE OR REPLACE FUNCTION problem_of(_operation json) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    names CONSTANT text[] := ARRAY['kind', 'upstream', 'group', 'request', 'dedupe_key', 'cost', 'max_attempts',
        'deadline_ms', 'delay_ms', 'priority', 'on_unknown', 'on_failure', 'deployment_id', 'deadline_at',
        'completion'];
    types CONSTANT text[] := ARRAY['string', 'string!', 'string!', 'object!', 'string', 'numbers', 'number',
        'number', 'number', 'number', 'one of repeat, reconcile, ask', 'one of skip, hold', 'string', 'string',
        'object'];
    request CONSTANT json := _operation -> 'request';
    problem text;
BEGIN
    IF json_typeof(_operation) <> 'object' THEN
        RETURN 'An operation is an object in braces, not of the type ' || json_typeof(_operation) || '.';
    END IF;
    problem := name_problem(_operation, '', names);
    FOR n IN 1 .. cardinality(names) LOOP
        EXIT WHEN problem IS NOT NULL;
        problem := type_problem(_operation -> names[n], names[n], types[n]);
    END LOOP;
    IF problem IS NULL THEN
        problem := coalesce(
            name_problem(request, 'request.', ARRAY['method', 'path', 'headers', 'body']),
            type_problem(request -> 'method', 'request.method',
                'one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS!'),
            type_problem(request -> 'path', 'request.path', 'string!'),
            type_problem(request -> 'headers', 'request.headers', 'strings'));
    END IF;
    IF problem IS NOT NULL THEN
        RETURN problem;
    ELSIF octet_length(convert_to(_operation ->> 'group', 'UTF8')) NOT BETWEEN 1 AND 255 THEN
        RETURN 'The field "group" must be 1 to 255 bytes long.';
    ELSIF octet_length(convert_to(_operation ->> 'dedupe_key', 'UTF8')) NOT BETWEEN 1 AND 512 THEN
        RETURN 'The field "dedupe_key" must be 1 to 512 bytes long.';
    END IF;
    RETURN NULL;
END $$;
