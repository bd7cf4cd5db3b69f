-- Format 7: what a node registers about itself has columns. A record of before ends within seconds.

ALTER TABLE nodes
    ADD COLUMN IF NOT EXISTS leaving boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS unreadable int[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS placement_hash text;
