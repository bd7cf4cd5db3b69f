-- Format 2: the state of limits and the costs of calls. Amounts are in tokens.

CREATE TABLE rate_limit_buckets (
    name text COLLATE "C" NOT NULL,
    partition int NOT NULL,
    upstream text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    capacity double precision,
    refill_per_s double precision DEFAULT 2.0,
    level double precision,
    source text COLLATE "C" NOT NULL,
    closed_until timestamptz,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (name, partition)
) WITH (fillfactor = 50);

CREATE TABLE api_cost_tracking (
    operation text COLLATE "C" NOT NULL,
    claim bigint NOT NULL,
    nth smallint NOT NULL,
    at timestamptz NOT NULL,
    upstream text COLLATE "C" NOT NULL,
    limit_name text COLLATE "C" NOT NULL,
    shape text COLLATE "C" NOT NULL,
    requested double precision NOT NULL,
    actual double precision,
    PRIMARY KEY (operation, claim, nth)
);
CREATE INDEX api_cost_tracking_at ON api_cost_tracking (at);

COMMENT ON TABLE rate_limit_buckets IS 'Limits as they stood when they last changed, written every few seconds';
COMMENT ON COLUMN rate_limit_buckets.source IS 'Where its figures come from: config, operator or learned';
COMMENT ON TABLE api_cost_tracking IS 'What calls cost of limits, where their dialect says it';
COMMENT ON COLUMN api_cost_tracking.operation IS 'Its id, as the API shows it';
COMMENT ON COLUMN api_cost_tracking.shape IS 'What calls of its like have in common: a name, # and a short hash';
COMMENT ON COLUMN api_cost_tracking.requested IS 'What was taken before it was sent';
COMMENT ON COLUMN api_cost_tracking.actual IS 'What it really cost; nothing when the answer did not say';
