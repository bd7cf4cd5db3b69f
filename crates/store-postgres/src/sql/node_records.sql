-- Format 8: what a node registers about itself has columns, instead of words behind its address.

ALTER TABLE nodes ADD COLUMN leaving boolean NOT NULL DEFAULT false;
ALTER TABLE nodes ADD COLUMN unreadable integer[] NOT NULL DEFAULT '{}';
ALTER TABLE nodes ADD COLUMN placement_hash text;
UPDATE nodes SET
    leaving = address ~ ' leaving( |$)',
    unreadable = coalesce(string_to_array(substring(address FROM ' without=([0-9,]+)'), ',')::integer[], '{}'),
    placement_hash = substring(address FROM ' placing=([^ ]+)'),
    address = split_part(address, ' ', 1);
