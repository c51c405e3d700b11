"""What other programs take of the machine while something is measured."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_IDLE = (3, 4)  # of the fields of /proc/stat: idle, and waiting for a disk
_COUNTED = 8  # fields behind these are parts of others


class OtherLoad:
    """Adds up processor time from when it is made. Linux alone tells that of all programs."""

    def __init__(self, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._began = clock()
        self._before = self._others()

    def cores(self) -> float | None:
        """Processor cores that programs other than this one and its child processes kept busy; None where the
        system does not tell."""
        now, seconds = self._others(), self._clock() - self._began
        if self._before is None or now is None or seconds <= 0:
            return None
        return max(0.0, now - self._before) / seconds

    def _others(self) -> float | None:
        """Seconds of processor time that all programs but ours have taken up to now."""
        try:
            line = (self._proc / "stat").read_text().split("\n", 1)[0]
            ticks = [int(field) for field in line.split()[1 : _COUNTED + 1]]
            ours = sum(self._ticks_of(pid) for pid in (os.getpid(), *self._children()))
        except (OSError, ValueError):
            return None
        busy = sum(taken for field, taken in enumerate(ticks) if field not in _IDLE)
        return (busy - ours) / os.sysconf("SC_CLK_TCK")

    def _children(self) -> list[int]:
        """The processes that this one has started. Raises OSError where no thread tells: engines would count
        as other programs."""
        listed: list[str] = []
        for thread in (self._proc / "self" / "task").iterdir():
            with suppress(OSError):  # it has ended
                listed.append((thread / "children").read_text())
        if not listed:
            raise FileNotFoundError("children")
        return [int(pid) for pids in listed for pid in pids.split()]

    def _ticks_of(self, pid: int) -> int:
        """Of a process and of its children that have ended; 0 where it has just ended itself."""
        with suppress(OSError):
            # The name in brackets may hold anything; utime is the 14th field.
            fields = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:15]))
        return 0
