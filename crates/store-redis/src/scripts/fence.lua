-- Whether one fence is newer than another. Compared as digits: above 2^53 numbers are not exact.
local function newer(a, b) return #a > #b or (#a == #b and a > b) end
local unpack = table.unpack or unpack
