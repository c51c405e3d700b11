"""llama.cpp's report of a load: which device holds which layer, and the size of every buffer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from app.engine.devices.memory import CPU, DeviceMemory, ModelMemory
from app.engine.native.devices import ggml
from app.engine.native.devices.offload_devices import OffloadDevice

_LAYER = re.compile(r"load_tensors: layer +(\d+) assigned to device (\S+?),")
_BUFFER = re.compile(r"^\w+: +(\S+)( .*)? buffer size = +([\d.]+) MiB")
_CONTEXT = re.compile(r"llama_context: n_ctx +=\s*(\d+)")
_PARTS = {"model": "weights", "compute": "compute"}  # others, such as KV, RS and output, are context
_MIB = 2**20
_REPACKED = ("_REPACK", "AMX")  # buffers of the CPU that hold copies of tensors of the file


class LoadReport:
    """The facts read from the log of one load."""

    def __init__(self, lines: Iterable[str], devices: Sequence[OffloadDevice]) -> None:
        self._devices = devices
        self.layers: dict[int, str] = {}  # number -> device; the last is the output layer
        self.n_ctx = 0
        self.buffers: list[tuple[str, str, int]] = []  # device, part (a field of DeviceMemory), bytes
        for line in lines:
            self.add(line)

    def add(self, line: str) -> None:
        """Read one more line; most say nothing about memory."""
        if found := _LAYER.search(line):
            self.layers[int(found[1])] = self.device(found[2])
        elif found := _CONTEXT.search(line):
            self.n_ctx = int(found[1])
        elif found := _BUFFER.search(line):
            self._add_buffer(found[1], (found[2] or "").strip(), round(float(found[3]) * _MIB))

    def _add_buffer(self, buffer: str, what: str, size: int) -> None:
        part = _PARTS.get(what, "context")
        if buffer.endswith("_Split"):  # rows of every layer, divided over all devices that hold layers
            holders = [name for name in self.layers.values() if name != CPU]
            self.buffers += [(name, part, size // len(holders)) for name in holders]
            return
        device = next((device.name for device in self._devices if device.has_buffer(buffer)), CPU)
        self.buffers.append((device, part, size))
        if part == "weights" and buffer.endswith("_Mapped"):
            self.buffers.append((device, "mapped", size))
        elif part == "weights" and buffer.endswith(_REPACKED):
            self.buffers.append((device, "repacked", size))

    @property
    def last_layer(self) -> int:
        """The number of the output layer."""
        return max(self.layers, default=0)

    def device(self, ggml_name: str) -> str:
        """Our name for a device: ggml numbers the workers of the whole process."""
        return next((device.name for device in self._devices if ggml.name(device.handle) == ggml_name), CPU)

    def memory(self, buffers: Iterable[tuple[str, str, int]] | None = None) -> ModelMemory:
        """The memory by device, in the order of the devices, the CPU last; of other `buffers` if given."""
        sizes: dict[str, dict[str, int]] = {
            name: {} for name in (*(device.name for device in self._devices), CPU)
        }
        for device, part, size in self.buffers if buffers is None else buffers:
            sizes[device][part] = sizes[device].get(part, 0) + size
        count: Callable[[str], int] = list(self.layers.values()).count
        found = [DeviceMemory(name, layers=count(name), **parts) for name, parts in sizes.items()]
        return ModelMemory(
            memory=tuple(usage for usage in found if usage.total or usage.layers or usage.device == CPU),
            n_gpu_layers=sum(usage.layers for usage in found if usage.device != CPU),
            most_layers=len(self.layers),
            n_ctx=self.n_ctx,
        )
