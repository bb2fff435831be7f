-- dates: how well the day of a memory fits the dates a query names (core/text/cues.py says what fits)

local DAY_MS, FIRST_DAY, LAST_DAY = 86400000, -719162, 2932896

-- Days since 1970-01-01 -> year, month, day, and back. Source: Hinnant, "chrono-compatible low-level date algorithms".
local function civil(days)
  local floor = math.floor
  local z = days + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return yoe + era * 400 + (month <= 2 and 1 or 0), month, doy - floor((153 * mp + 2) / 5) + 1
end

local function days_of(year, month, day)
  local floor = math.floor
  local y = month <= 2 and year - 1 or year
  local era = floor(y / 400)
  local yoe = y - era * 400
  local doy = floor((153 * (month > 2 and month - 3 or month + 9) + 2) / 5) + day - 1
  return era * 146097 + yoe * 365 + floor(yoe / 4) - floor(yoe / 100) + doy - 719468
end

local function day_fit(year, month, day, days)
  if year < 1 or year > 9999 then return 0 end
  local named = days_of(year, month, day)
  local _, there = civil(named)
  local away = math.abs(days - named)
  if there ~= month or away > 7 then return 0 end
  return away <= 1 and 1 or 0.5
end

-- One date, 0 where a part was not said
local function fit_one(named, days, y, m)
  local year, month, day = named[1], named[2], named[3]
  if month == 0 then return year == y and 0.3 or 0 end
  if day > 0 then
    if year > 0 then return day_fit(year, month, day, days) end
    return math.max(day_fit(y - 1, month, day, days), day_fit(y, month, day, days), day_fit(y + 1, month, day, days))
  end
  if m == month then return (year == 0 or year == y) and 1 or 0 end
  local told = m > 1 and y or y - 1
  return ((m - month) % 12 == 1 and (year == 0 or year == told)) and 0.4 or 0
end

local function fits_of(dates)
  local known = {}
  return function(time)
    local days = math.floor(time / DAY_MS)
    if days < FIRST_DAY or days > LAST_DAY then return 0 end
    if not known[days] then
      local y, m = civil(days)
      local best = 0
      for i = 1, #dates do best = math.max(best, fit_one(dates[i], days, y, m)) end
      known[days] = best
    end
    return known[days]
  end
end
