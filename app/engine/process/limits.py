"""Limits on an engine process's main memory, so that it fails before the system does. Linux only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

_LEFT = 1 / 16  # share of the free memory left for other programs
_ROOT = Path("/")


def go_first() -> None:
    """Make the system end this process and its children first when it runs out of memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def limit_memory() -> None:
    """Limit this process to nearly all memory that is free now.

    Private memory is limited (RLIMIT_DATA). A limit on addresses would refuse mapped weights, and GPU
    drivers, which reserve more addresses than any machine has memory. Memory on the GPU is limited by its
    driver; a software device uses private memory.
    """
    try:
        import resource

        page = resource.getpagesize()
        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * page
        free = sum(free_memory())
    except (ImportError, OSError):
        return  # not Linux
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = held + int(free * (1 - _LEFT))
    resource.setrlimit(
        resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most)
    )


def free_memory(root: Path = _ROOT) -> tuple[int, int]:
    """The bytes of main memory and of swap still available to this process: the system's, or less if a
    control group (container, service) limits it. Raises OSError outside Linux."""
    memory, swap = (1024 * size for size in _numbers(root / "proc/meminfo", "MemAvailable:", "SwapFree:"))
    for group in _groups(root):
        with contextlib.suppress(OSError):  # the root group has no limits
            cache = sum(_numbers(group / "memory.stat", "inactive_file", "active_file"))
            memory = min(memory, max(0, _left(group, "memory") + cache))
        with contextlib.suppress(OSError):
            swap = min(swap, max(0, _left(group, "memory.swap")))
    return memory, swap


def _groups(root: Path) -> Iterator[Path]:
    """The control groups (version 2) of this process, innermost first. In a container the path may name
    groups that are not visible there."""
    mount = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::/"):
                innermost = mount / line.removeprefix("0::/")
                yield innermost
                yield from (group for group in innermost.parents if group.is_relative_to(mount))


def _left(group: Path, resource: str) -> int:
    """The bytes of a resource left to a control group; raises OSError if the group does not count it."""
    most = (group / f"{resource}.max").read_text(encoding="ascii").strip()
    taken = int((group / f"{resource}.current").read_text(encoding="ascii"))
    return sys.maxsize if most == "max" else int(most) - taken


def _numbers(path: Path, *names: str) -> list[int]:
    """The numbers after these names in a kernel file; raises OSError if one is missing."""
    lines = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    found = {words[0]: int(words[1]) for words in lines if words[0] in names}
    if len(found) < len(names):
        raise OSError(f"{path} does not say {', '.join(names)}")
    return [found[name] for name in names]
