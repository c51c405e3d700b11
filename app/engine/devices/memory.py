"""Processor cores, and memory by device: what a model needs or took, what is free, how many layers fit. Found
without loading llama.cpp.

All sizes are in bytes. The numbers themselves come from llama.cpp (app/engine/devices/offload.py).
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from app.base.numbers import file_size

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
    """One fewer than the cores: one is left for the rest of the machine, such as the window."""
    return max(1, cores() - 1)


def threads_for(model: str | Path) -> int:
    """The default number of threads for a model file: fewer than usual if it is small."""
    try:
        size = Path(model).stat().st_size
    except OSError:  # loading it gives the better error
        return default_threads()
    return min(default_threads(), max(1, size // _WORTH_A_THREAD))


GPU_BUILDS = {"cuda": "CUDA", "vulkan": "Vulkan", "hip": "ROCm", "metal": "Metal"}
"""Values of `make run GPU=...` -> the backend's name in llama.cpp."""

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
    """Backends that this platform supports and `backends` lacks -> the commands that build them."""
    there = gpu_backends(backends)
    possible = {gpu: name for gpu, name in GPU_BUILDS.items() if (gpu == "metal") == (platform == "darwin")}
    return {name: build_command(gpu) for gpu, name in possible.items() if name not in there}


CPU = "CPU"
ALL_LAYERS = -1
MARGIN = 512 * 2**20  # left free on every device, for other programs and the driver


class Device(msgspec.Struct, frozen=True):
    """A device as llama.cpp reports it. The CPU's `free` is the main memory that programs can still take."""

    name: str  # "CPU", "CUDA0", "RPC0": what the setting `device` takes, "CPU" apart
    description: str
    kind: str  # "CPU", "GPU", "integrated GPU", "accelerator" or "worker"
    backend: str  # "CPU", "CUDA", "Vulkan", "RPC", …
    free: int
    total: int
    endpoint: str = ""  # "host:port" of the worker it belongs to


class DeviceMemory(msgspec.Struct, frozen=True):
    """The memory of one model on one device."""

    device: str
    weights: int = 0
    context: int = 0  # KV cache, recurrent states
    compute: int = 0
    mapped: int = 0  # of `weights`: pages of the file, which the system drops when others need the room;
    # known only after loading
    layers: int = 0  # blocks, and the output layer as one more
    repacked: int = 0  # of `weights`: copies in the order in which this processor multiplies; likewise

    @property
    def total(self) -> int:
        return self.weights + self.context + self.compute


class ModelMemory(msgspec.Struct, frozen=True):
    """The memory of one model on all devices, and its layers."""

    memory: tuple[DeviceMemory, ...]
    n_gpu_layers: int  # kept on devices besides the CPU
    most_layers: int  # all blocks, and the output layer as one more
    n_ctx: int = 0  # size of the context, in tokens

    def with_context(self, other: ModelMemory) -> ModelMemory:
        """This memory plus that of a second context of the same model, reported by `other`."""
        second = {usage.device: usage for usage in other.memory}
        return msgspec.structs.replace(
            self,
            memory=tuple(
                msgspec.structs.replace(
                    usage,
                    context=usage.context + second[usage.device].context,
                    compute=usage.compute + second[usage.device].compute,
                )
                for usage in self.memory
            ),
        )

    @property
    def layers_option(self) -> int:
        """The `n_gpu_layers` that gives this placement."""
        return ALL_LAYERS if self.n_gpu_layers == self.most_layers else self.n_gpu_layers


class Shortage(msgspec.Struct, frozen=True):
    """A device with less memory than needed."""

    device: str
    needed: int
    free: int

    def __str__(self) -> str:
        return f"{self.device} would need {file_size(self.needed)} and has {file_size(self.free)} free"


class PairMemory(msgspec.Struct, frozen=True):
    """What a pair needs and what the devices have. Their `free` includes the memory of the loaded pair, which
    the new one replaces."""

    target: ModelMemory
    draft: ModelMemory | None
    devices: tuple[Device, ...]

    @property
    def models(self) -> tuple[ModelMemory, ...]:
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def shortages(self) -> tuple[Shortage, ...]:
        """The devices that have less than is needed; empty if the pair fits."""
        return shortages(self.devices, self.models)


def offload_devices(devices: Iterable[Device]) -> tuple[Device, ...]:
    """The devices besides the CPU that can hold layers."""
    return tuple(device for device in devices if device.name != CPU and device.kind != "accelerator")


def total_by_device(models: Iterable[ModelMemory]) -> dict[str, int]:
    """Device name -> bytes of all `models` together."""
    totals: dict[str, int] = {}
    for model in models:
        for usage in model.memory:
            totals[usage.device] = totals.get(usage.device, 0) + usage.total
    return totals


def shortages(
    devices: Iterable[Device], models: Iterable[ModelMemory], margin: int = 0
) -> tuple[Shortage, ...]:
    """The devices on which `models` need more than the free memory less `margin`.

    A device that reports 0 of 0 bytes is left out.
    """
    needed = total_by_device(models)
    return tuple(
        Shortage(device.name, needed[device.name], device.free)
        for device in devices
        if device.total and needed.get(device.name, 0) > max(0, device.free - margin)
    )


def freed(devices: Iterable[Device], models: Iterable[ModelMemory]) -> tuple[Device, ...]:
    """The devices as they will be once `models` are unloaded. Mapped pages already count as free."""
    held: dict[str, int] = {}
    for model in models:
        for usage in model.memory:
            held[usage.device] = held.get(usage.device, 0) + usage.total - usage.mapped
    return tuple(
        msgspec.structs.replace(device, free=min(device.total, device.free + held.get(device.name, 0)))
        for device in devices
    )


def most_that_fits(fits: Callable[[int], bool], most: int) -> int:
    """The largest n in 0..`most` with `fits(n)`, which is True up to some n; 0 if none fits.

    Calls `fits` about log2(most) times, with `most` first: often everything fits.
    """
    if fits(most):
        return most
    low, high = 0, most  # high does not fit
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def fit_layers(
    needs_target: Callable[[int], ModelMemory],
    needs_draft: Callable[[int], ModelMemory] | None,
    devices: Sequence[Device],
    margin: int = MARGIN,
) -> tuple[ModelMemory, ModelMemory | None]:
    """Place as many layers on the devices as their memory allows: the target's first, then the draft's.

    `needs_...` return what a model needs with n layers there (`ALL_LAYERS` for all). The target's layers are
    worth more, because every token waits for its pass. The CPU takes all that does not fit elsewhere.
    """
    offload = offload_devices(devices)

    def best(needs: Callable[[int], ModelMemory], beside: tuple[ModelMemory, ...]) -> ModelMemory:
        asked: dict[int, ModelMemory] = {}

        def need(layers: int) -> ModelMemory:
            if layers not in asked:
                asked[layers] = needs(layers)
            return asked[layers]

        def fits(layers: int) -> bool:
            return not shortages(offload, (*beside, need(layers)), margin)

        most = need(ALL_LAYERS).most_layers
        return need(most_that_fits(fits, most)) if offload else need(0)

    target = best(needs_target, ())
    return target, best(needs_draft, (target,)) if needs_draft else None
