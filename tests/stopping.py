"""How soon an answer must stop, on a quiet or busy machine."""

from __future__ import annotations

import time

STOPS_WITHIN = 0.1  # seconds
ATTEMPTS = 6  # a busy machine may spoil some
_TURNS = 6  # threads that wake each other between the key and the answer's end
_LOOKS = 20


def stop_limit() -> float:
    """The seconds within which a stop must act now: the limit plus the delay of each thread involved,
    measured by how late this thread wakes up at worst, which is next to nothing on a quiet machine."""
    latest = 0.0
    for _ in range(_LOOKS):
        began = time.perf_counter()
        time.sleep(0.001)
        latest = max(latest, time.perf_counter() - began - 0.001)
    return STOPS_WITHIN + _TURNS * latest
