"""How soon an answer has to stop, on a quiet machine and on a busy one."""

from __future__ import annotations

import time

STOPS_WITHIN = 0.1  # seconds
ATTEMPTS = 6  # a busy machine may spoil some
_TURNS = 6  # threads that wake each other between the key and the answer's end
_LOOKS = 20


def stop_limit() -> float:
    """Seconds within which a stop has to act now: what each thread on the way may wait for its turn is added,
    as late as this one wakes up at worst; next to nothing where nothing else runs."""
    latest = 0.0
    for _ in range(_LOOKS):
        began = time.perf_counter()
        time.sleep(0.001)
        latest = max(latest, time.perf_counter() - began - 0.001)
    return STOPS_WITHIN + _TURNS * latest
