-- The tables. Times are microseconds since 1970; 64-bit numbers are stored as bigint with the same
-- bits. Operations are written once and never updated; nothing that changes is indexed.

CREATE TABLE meta (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL);

CREATE TABLE partitions (
    partition int PRIMARY KEY,
    epoch bigint NOT NULL,
    node text,
    until bigint NOT NULL,
    snapshot bigint NOT NULL,
    version bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE log (
    partition int NOT NULL,
    lsn bigint NOT NULL,
    facts bytea NOT NULL,
    PRIMARY KEY (partition, lsn)
);

CREATE SEQUENCE snapshot_versions;

CREATE TABLE snapshots (
    partition int NOT NULL,
    version bigint NOT NULL,
    part int NOT NULL,
    facts bytea NOT NULL,
    PRIMARY KEY (partition, version, part)
);

CREATE TABLE operations (
    partition int NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    grp text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    envelope bytea NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (partition, seq)
) PARTITION BY LIST (partition);

CREATE TABLE results (
    partition int NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    attempt int NOT NULL,
    fault_class text COLLATE "C",
    fault text,
    body bytea NOT NULL,
    PRIMARY KEY (partition, seq)
) PARTITION BY LIST (partition);
CREATE INDEX results_unsuccessful ON results (partition, state, seq) WHERE state <> 'succeeded';

CREATE TABLE leases (
    name text COLLATE "C" PRIMARY KEY,
    fence bigint NOT NULL,
    until bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE rate_limit_buckets (
    name text COLLATE "C" PRIMARY KEY,
    tokens bigint NOT NULL,
    carry bigint NOT NULL,
    at bigint NOT NULL,
    capacity bigint NOT NULL,
    refill_per_s bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE windows (
    key text COLLATE "C" PRIMARY KEY,
    level int NOT NULL,
    until bigint NOT NULL
);
CREATE INDEX windows_closing ON windows (until) WHERE until >= 0;

CREATE TABLE nodes (
    name text COLLATE "C" PRIMARY KEY,
    address text NOT NULL,
    until bigint NOT NULL
) WITH (fillfactor = 50);

-- A 64-bit number without its sign, and back.
CREATE FUNCTION unsigned(_bits bigint) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN _bits < 0 THEN _bits + 18446744073709551616::numeric ELSE _bits::numeric END
$$;

CREATE FUNCTION bits(_number numeric) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (CASE WHEN _number >= 9223372036854775808 THEN _number - 18446744073709551616 ELSE _number END)::bigint
$$;

-- Now: the time of the caller's clock, or the server's own when none is given.
CREATE FUNCTION moment(_clock bigint) RETURNS numeric LANGUAGE sql VOLATILE AS $$
    SELECT unsigned(coalesce(_clock, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint))
$$;

-- A time that much later; saturates at the last representable moment.
CREATE FUNCTION later(_moment numeric, _by bigint) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT least(_moment + unsigned(_by), 18446744073709551615)
$$;
