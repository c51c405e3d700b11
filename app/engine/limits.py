"""What an engine process may take of main memory, so that it goes before the system does. Linux only."""

from __future__ import annotations

import contextlib
from pathlib import Path

_LEFT = 1 / 16  # of what is free, for others


def go_first() -> None:
    """Where the system runs out of memory, it is to end this process, and its children, before all others."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def limit_memory() -> None:
    """Let this process take what is free now, but for a little, and refuse what goes beyond.

    Private memory is what counts (RLIMIT_DATA). Weights that are mapped are pages of their file, and a GPU's
    driver reserves more addresses than any machine has memory: a limit on addresses would refuse both.
    """
    try:
        import resource

        page = resource.getpagesize()
        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * page
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        sizes = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
        free = sizes["MemAvailable"] + sizes["SwapFree"]
    except (ImportError, OSError, KeyError):
        return  # not Linux
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + int(free * (1 - _LEFT))
    resource.setrlimit(
        resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most)
    )
