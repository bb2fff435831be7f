"""Scripts whose i-th command fails.

The source a loader would send is rewritten: every `redis.call` goes through a counter that reads, from a
key outside the partition, which call is to raise an error. What a script undoes runs with `redis.pcall`
and is left alone.
"""

from __future__ import annotations

import re
from functools import cache

import redis as client

import budgets
from omoide.lua import Script
from omoide.lua import load as original

FAULT_KEY = "fault"
_COUNTER = f"""
local real_call, fault_calls = redis.call, 0
local fault_at = tonumber(real_call('GET', '{FAULT_KEY}') or 0)
local function counted_call(...)
  fault_calls = fault_calls + 1
  if fault_calls == fault_at then error({{ err = 'ERR injected' }}) end
  return real_call(...)
end
"""


@cache
def load(name: str) -> Script:
    """The verb of that name, with the counter in it."""
    script = original(name)
    if script.read_only:
        return script
    return budgets.rewritten(script, counting(script.source))


def frugal(name: str) -> Script:
    """The same, with the small budget of `budgets`."""
    script = budgets.frugal(name)
    return budgets.rewritten(script, counting(script.source))


def counting(source: str) -> str:
    """The source with the counter in it."""
    return _COUNTER + re.sub(r"\bredis\.call\b", "counted_call", source)


def fail_at(raw: client.Redis, place: int) -> None:
    """Make call number `place` (from 1) of every script fail; 0 for none."""
    raw.set(FAULT_KEY, place)
