"""Builds of llama.cpp: the backends of a build, and the command that makes a different one."""

from __future__ import annotations

import sys
from collections.abc import Iterable

GPU_BUILDS = {"cuda": "CUDA", "vulkan": "Vulkan", "hip": "ROCm", "metal": "Metal"}
"""What `make run GPU=...` takes -> the backend's name in llama.cpp."""

IS_PACKAGE = not __name__.startswith("app.")
"""Whether this was installed: packages are imported by another name (packaging/wheel)."""

SOURCE_FOLDER = (
    "a folder with Draftscope's source, because a package cannot be built anew"
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
