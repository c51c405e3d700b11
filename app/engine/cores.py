"""The processor cores of this machine, for who must not load llama.cpp to know them."""

from __future__ import annotations

import os


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """One fewer than the cores, so that the rest of the machine (the window) has one."""
    return max(1, cores() - 1)
