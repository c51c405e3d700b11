"""What an engine process may take of main memory, so that it goes before the system does. Linux only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

_LEFT = 1 / 16  # of what is free, for others
_ROOT = Path("/")


def go_first() -> None:
    """Where the system runs out of memory, it is to end this process, and its children, before all others."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def limit_memory() -> None:
    """Let this process take what is free now, but for a little, and refuse what goes beyond.

    Private memory is what counts (RLIMIT_DATA). Weights that are mapped are pages of their file, and a GPU's
    driver reserves more addresses than any machine has memory: a limit on addresses would refuse both. What a
    driver takes on the GPU is the driver's to refuse; a software device's memory is private memory.
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
    """Bytes of main memory, and of swap, that this process can still have: the system's, or less where a
    control group (a container, a service) holds it to less. Raises OSError where this is not Linux."""
    memory, swap = (1024 * size for size in _numbers(root / "proc/meminfo", "MemAvailable:", "SwapFree:"))
    for group in _groups(root):
        with contextlib.suppress(OSError):  # the root group has no limits
            cache = sum(_numbers(group / "memory.stat", "inactive_file", "active_file"))
            memory = min(memory, max(0, _left(group, "memory") + cache))
        with contextlib.suppress(OSError):
            swap = min(swap, max(0, _left(group, "memory.swap")))
    return memory, swap


def _groups(root: Path) -> Iterator[Path]:
    """The control groups (version 2) that this process is in, innermost first. In a container the path may
    name some that cannot be seen from there."""
    mount = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::/"):
                innermost = mount / line.removeprefix("0::/")
                yield innermost
                yield from (group for group in innermost.parents if group.is_relative_to(mount))


def _left(group: Path, resource: str) -> int:
    """Bytes that a control group has left of a resource; raises OSError where it does not count that."""
    most = (group / f"{resource}.max").read_text(encoding="ascii").strip()
    taken = int((group / f"{resource}.current").read_text(encoding="ascii"))
    return sys.maxsize if most == "max" else int(most) - taken


def _numbers(path: Path, *names: str) -> list[int]:
    """Those that stand behind these names in a file of the kernel; raises OSError where one is not there."""
    lines = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    found = {words[0]: int(words[1]) for words in lines if words[0] in names}
    if len(found) < len(names):
        raise OSError(f"{path} does not say {', '.join(names)}")
    return [found[name] for name in names]
