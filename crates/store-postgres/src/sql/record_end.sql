-- Format 6: a record is live until the end of its time, that moment included.

CREATE OR REPLACE FUNCTION is_live(_record records, _now numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT unsigned(_record.expires) >= _now OR (_record.answer IS NULL AND unsigned(_record.until) > _now)
$$;
