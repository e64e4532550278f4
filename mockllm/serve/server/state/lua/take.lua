-- Takes from the buckets of quotas, from all or from none; whether it did, and what of each is used,
-- as a list in JSON: mockllm.core.quotas.take. Arguments: time, 1 to take by force; then for
-- each bucket its name, its limit, the seconds in which it fills, and the amount.
local now, force = tonumber(ARGV[3]), ARGV[4] == '1'
local function text(number) return string.format('%.17g', number) end
local granted, buckets = true, {}
for place = 5, #ARGV, 4 do
  local limit, seconds = tonumber(ARGV[place + 1]), tonumber(ARGV[place + 2])
  local name, amount = prefix .. 'buckets/' .. ARGV[place], tonumber(ARGV[place + 3])
  local fill = redis.call('HMGET', name, 'used', 'at')
  local used, at = tonumber(fill[1] or 0), tonumber(fill[2] or 0)
  used = math.max(0, used - math.max(0, now - at) * limit / seconds)
  -- The rest is mockllm.core.quotas.Limit.rounding; both change together.
  if not force and used + math.max(amount, 1) > limit + 1e-9 + 1e-6 * limit / seconds then
    granted = false
  end
  buckets[#buckets + 1] = {name, used, amount, math.max(now, at), seconds / limit}
end
local outcome = {granted and '1' or '0'}
for _, bucket in ipairs(buckets) do
  local name, used, amount, at, each = unpack(bucket)
  if granted then
    used = used + amount
    redis.call('HSET', name, 'used', text(used), 'at', text(at))
    redis.call('EXPIRE', name, string.format('%.0f', used * each + 60))
  end
  outcome[#outcome + 1] = text(used)
end
return done('[' .. table.concat(outcome, ',') .. ']')
