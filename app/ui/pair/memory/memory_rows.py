"""What a pair takes on each device, ready to be shown. No widgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.engine.devices.memory import CPU, Device, DeviceMemory, ModelMemory, PairMemory, freed
from app.engine.types import ModelInfo, PairInfo
from app.ui.widgets.words.numbers import file_size

KINDS = ("weights", "context", "compute")
HEADINGS = {"weights": "weights", "context": "KV cache", "compute": "compute"}
NAMES = {CPU: "Main memory"}


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One device: its memory, and what each model takes of it."""

    device: Device
    models: tuple[tuple[str, DeviceMemory], ...]  # ("target" or "draft", what it takes here)

    @property
    def needed(self) -> int:
        return sum(memory.total for _role, memory in self.models)

    @property
    def excess(self) -> int:
        """Bytes that are missing; 0 where the pair fits, or where the device's free memory is not known."""
        return max(0, self.needed - self.device.free) if self.device.total else 0

    @property
    def name(self) -> str:
        return NAMES.get(self.device.name, self.device.name)

    @property
    def sentence(self) -> str:
        """The bytes needed and the bytes free."""
        needed = file_size(self.needed)
        if not self.device.total:
            return f"{needed}; free memory unknown"
        if self.excess:
            return f"{needed} of {file_size(self.device.free)} free: {file_size(self.excess)} too much"
        return f"{needed} of {file_size(self.device.free)} free"


def memory_rows(memory: PairMemory) -> tuple[MemoryRow, ...]:
    """The devices that the pair uses or will use, in llama.cpp's order, main memory last."""
    roles = [("target", memory.target)]
    if memory.draft is not None:
        roles.append(("draft", memory.draft))
    rows = []
    for device in memory.devices:
        models = [
            (role, memory) for role, model in roles for memory in model.memory if memory.device == device.name
        ]
        if any(memory.total for _role, memory in models):
            rows.append(MemoryRow(device, tuple(models)))
    return tuple(rows)


def taken_memory(pair: PairInfo, devices: Sequence[Device]) -> PairMemory:
    """What a loaded pair took, by llama.cpp's own report; `devices` are as they are now, with the pair
    loaded."""
    target = _taken(pair.target)
    draft = _taken(pair.draft) if pair.draft is not None else None
    models = (target,) if draft is None else (target, draft)
    return PairMemory(target, draft, freed(devices, models))


def _taken(info: ModelInfo) -> ModelMemory:
    return ModelMemory(info.memory, info.n_gpu_layers, info.n_layers + 1, info.n_ctx)


def advice(rows: Sequence[MemoryRow]) -> str:
    """What to lower where the pair does not fit; "" where it fits."""
    over = [row for row in rows if row.excess]
    if not over:
        return ""
    if all(row.device.name == CPU for row in over):
        return "It does not fit. Lower ctx_size or ubatch_size, or take a smaller KV format or quantisation."
    return (
        "It does not fit. Lower n_gpu_layers (Fit for me does), ctx_size or ubatch_size, or take a smaller "
        "KV format."
    )
