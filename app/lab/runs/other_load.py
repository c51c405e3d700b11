"""The processor time that other programs use during a measurement."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_IDLE = (3, 4)  # of the fields of /proc/stat: idle, and waiting for a disk
_COUNTED = 8  # the fields after these are already part of them


class OtherLoad:
    """Adds up the processor time of other programs since it was made. Only Linux reports that of all
    programs."""

    def __init__(self, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._began = clock()
        self._before = self._others()

    def cores(self) -> float | None:
        """Processor cores kept busy by programs other than this one and its children; None where the system
        does not say."""
        now, seconds = self._others(), self._clock() - self._began
        if self._before is None or now is None or seconds <= 0:
            return None
        return max(0.0, now - self._before) / seconds

    def _others(self) -> float | None:
        """Seconds of processor time that all programs but ours have used so far."""
        try:
            line = (self._proc / "stat").read_text().split("\n", 1)[0]
            ticks = [int(field) for field in line.split()[1 : _COUNTED + 1]]
            ours = sum(self._ticks_of(pid) for pid in (os.getpid(), *self._children()))
        except (OSError, ValueError):
            return None
        busy = sum(taken for field, taken in enumerate(ticks) if field not in _IDLE)
        return (busy - ours) / os.sysconf("SC_CLK_TCK")

    def _children(self) -> list[int]:
        """The child processes of this one, and theirs. Raises OSError where no thread of this process lists
        them: engines would count as other programs."""
        found = self._listed("self")
        if found is None:
            raise FileNotFoundError("children")
        for pid in found:  # grows meanwhile
            found += self._listed(str(pid)) or []
        return found

    def _listed(self, process: str) -> list[int] | None:
        """The children of a process; None where no thread of it lists them."""
        listed: list[str] = []
        with suppress(OSError):  # the process has ended
            for thread in (self._proc / process / "task").iterdir():
                with suppress(OSError):  # the thread has ended
                    listed.append((thread / "children").read_text())
        return [int(pid) for pids in listed for pid in pids.split()] if listed else None

    def _ticks_of(self, pid: int) -> int:
        """The clock ticks of a process and of its children that ended; 0 where it has just ended."""
        with suppress(OSError):
            # The name in brackets may hold spaces and brackets; utime is the 14th field.
            fields = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:15]))
        return 0
