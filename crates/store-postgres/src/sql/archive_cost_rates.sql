-- Format 3: what limits restore per second is called refill_rate, and the costs of calls have the
-- restore_rate that the response reported.

ALTER TABLE rate_limit_buckets RENAME COLUMN refill_per_s TO refill_rate;
ALTER TABLE api_cost_tracking ADD COLUMN restore_rate double precision;

COMMENT ON COLUMN rate_limit_buckets.refill_rate IS 'What comes back per second; nothing for a window, a cap or a gate';
COMMENT ON COLUMN api_cost_tracking.restore_rate IS 'What the limit restored per second, as the answer said';
