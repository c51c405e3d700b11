"""Whether a file fits on the GPU, in memory, on both together, or not at all; with the numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from app.base.numbers import file_size, percent
from app.engine.devices.memory import CPU, Device

RESERVE = 0.05  # of what is free: the system and other programs need some
_CONTEXT_SHARE = 0.1
_CONTEXT_LEAST = 200_000_000
_METAL = ("MTL", "Metal")  # the backend's names: Apple's GPUs have no memory of their own


class Light(StrEnum):
    """Where a file can run."""

    GPU = "fits on the GPU"
    MEMORY = "fits in memory"
    BOTH = "fits on GPU and memory together"
    NOT = "will not fit"


@dataclass(frozen=True, slots=True)
class Room:
    """Free memory in bytes. `device` is None without a GPU."""

    memory: int
    device: int | None = None
    shared: bool = False  # the GPU's memory is a part of main memory

    @classmethod
    def of(cls, devices: Iterable[Device]) -> Room:
        """From this machine's devices. The memory of several GPUs is added up, because layers can be split
        over them."""
        memory, gpus, shared = 0, [], False
        for device in devices:
            if device.name == CPU:
                memory = device.free
            elif "GPU" in device.kind:
                gpus.append(device.free)
                shared |= device.kind == "integrated GPU" or device.backend in _METAL
        return cls(memory, sum(gpus) if gpus else None, shared)

    @property
    def together(self) -> int:
        """The free memory of GPU and main memory together, each byte counted once."""
        if self.device is None:
            return self.memory
        return max(self.memory, self.device) if self.shared else self.memory + self.device

    def __str__(self) -> str:
        memory = f"{file_size(self.memory)} of memory"
        return memory if self.device is None else f"{file_size(self.device)} on the GPU and {memory}"


@dataclass(frozen=True, slots=True)
class Fit:
    """A light and its numbers, in bytes."""

    light: Light
    weights: int  # the file
    context: int  # KV cache and compute buffers
    room: Room

    @property
    def needed(self) -> int:
        return self.weights + self.context

    @property
    def is_tight(self) -> bool:
        """Whether it does not fit only because of the reserve."""
        return self.light is Light.NOT and self.needed <= self.room.together

    def __str__(self) -> str:
        parts = f"needs about {file_size(self.needed)}"
        parts += f" ({file_size(self.weights)} weights, {file_size(self.context)} context)"
        kept = f", {percent(RESERVE, 0)} of it reserved for other programs" if self.is_tight else ""
        return f"{self.light}: {parts}; free: {self.room}{kept}"


def fit_in(size: int, room: Room) -> Fit:
    """The light of a file (or of a pair: give the sum) of `size` bytes.

    Context and buffers are assumed to be a tenth of it, at least 200 MB, because only the model's size is
    known.
    """
    context = max(_CONTEXT_LEAST, int(size * _CONTEXT_SHARE))
    whole = size + context
    if room.device is not None and whole <= room.device * (1 - RESERVE):
        light = Light.GPU
    elif whole <= room.memory * (1 - RESERVE):
        light = Light.MEMORY
    elif whole <= room.together * (1 - RESERVE):
        light = Light.BOTH
    else:
        light = Light.NOT
    return Fit(light, size, context, room)
