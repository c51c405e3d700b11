"""The processor cores of this machine, found without loading llama.cpp."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_WORTH_A_THREAD = 8 * 2**20
"""The fewest bytes of weights worth a thread of their own: threads wait for each other after every operation
of a pass."""


@cache
def cpu_name() -> str:
    """The processor's own name."""
    listed = Path("/proc/cpuinfo")
    if listed.exists():  # on Linux `platform` says only x86_64
        for line in listed.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """One fewer than the cores: the rest of the machine, such as the window, has one."""
    return max(1, cores() - 1)


def threads_for(model: str | Path) -> int:
    """The default number of threads for a model file: fewer than usual if it is small."""
    try:
        size = Path(model).stat().st_size
    except OSError:  # loading it gives the better error
        return default_threads()
    return min(default_threads(), max(1, size // _WORTH_A_THREAD))


GPU_BUILDS = {"cuda": "CUDA", "vulkan": "Vulkan", "hip": "ROCm", "metal": "Metal"}
"""What `make run GPU=...` takes -> the backend's name in llama.cpp."""

IS_PACKAGE = not __name__.startswith("app.")
"""Whether this was installed: packages are imported by a different name (packaging/wheel)."""

SOURCE_FOLDER = (
    "a folder with Draftscope's source, because a package cannot be rebuilt"
    if IS_PACKAGE
    else "the source folder"
)
"""Where build commands run."""

_SPELLED = {"MTL": "Metal"}
_EVERYWHERE = ("RPC", "CPU", "BLAS")


def build_command(gpu: str) -> str:
    """The command, run in `SOURCE_FOLDER`, that builds llama.cpp for `gpu` ("none": for the CPU alone)."""
    return f"make run GPU={gpu}"


def gpu_backends(backends: Iterable[str]) -> tuple[str, ...]:
    """A build's GPU backends."""
    return tuple(_SPELLED.get(backend, backend) for backend in backends if backend not in _EVERYWHERE)


def other_builds(backends: Iterable[str], platform: str = sys.platform) -> dict[str, str]:
    """Each backend that this platform can have and `backends` lacks -> the command that builds it."""
    there = gpu_backends(backends)
    possible = {gpu: name for gpu, name in GPU_BUILDS.items() if (gpu == "metal") == (platform == "darwin")}
    return {name: build_command(gpu) for gpu, name in possible.items() if name not in there}
