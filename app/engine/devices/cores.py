"""The processor cores of this machine, for who must not load llama.cpp to know them."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

_WORTH_A_THREAD = 8 * 2**20
"""Bytes of weights that one thread should read in a pass, at least: threads wait for each other behind every
operation of it."""


@cache
def cpu_name() -> str:
    """The processor, as it calls itself."""
    listed = Path("/proc/cpuinfo")
    if listed.exists():  # Linux, where the platform's own word is no more than x86_64
        for line in listed.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """One fewer than the cores, so that the rest of the machine (the window) has one."""
    return max(1, cores() - 1)


def threads_for(model: str | Path) -> int:
    """The threads that a model file runs with where nobody chose: fewer than usual where it is small."""
    try:
        size = Path(model).stat().st_size
    except OSError:  # who loads it says so better
        return default_threads()
    return min(default_threads(), max(1, size // _WORTH_A_THREAD))
