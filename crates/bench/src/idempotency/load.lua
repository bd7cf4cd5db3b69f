-- The load of `bench idempotency`. Every request has the same bytes in every case but for the name
-- of one header, so that generating the load costs the same. Arguments: that header, 9 characters
-- for this run, and the number of keys (0: a new one for each request). load.rs has the same
-- request.

local threads = 0

function setup(thread)
    threads = threads + 1
    thread:set("number", threads)
end

function init(args)
    run, keys, count = args[2], tonumber(args[3]), 0
    local body = '{"sku":"LMP-2041","title":"Desk lamp, brass"}'
    before = "POST /api/v1/items HTTP/1.1\r\nHost: " .. wrk.host .. ":" .. wrk.port
        .. "\r\nContent-Type: application/json\r\nX-Api-Key: bench-caller\r\n" .. args[1] .. ": "
    between = "\r\nCookie: session="
    after = "\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end

function request()
    count = count + 1
    local key
    if keys > 0 then
        -- A stride that is coprime with the number of keys visits all of them.
        key = string.format("%s00%010dA", run, (count * 7919 + number) % keys)
    else
        key = string.format("%s%02d%010dA", run, number, count)
    end
    return before .. key .. between .. key .. after
end

function done(summary, latency, requests)
    local errors = summary.errors
    local line = 'figures {"requests":%.0f,"micros":%.0f,"p50_us":%.0f,"p99_us":%.0f,"max_us":%.0f,'
        .. '"failed":%.0f,"broken":%.0f,"timeouts":%.0f}\n'
    io.write(string.format(line, summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        latency.max, errors.status, errors.connect + errors.read + errors.write, errors.timeout))
end
