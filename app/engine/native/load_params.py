"""Load options as llama.cpp's parameter structs, and llama.cpp's report of a load."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import llama_cpp

from app.engine.devices.memory import CPU, DeviceMemory, ModelMemory, threads_for
from app.engine.errors import SettingError
from app.engine.native import ggml
from app.engine.native.devices import OffloadDevice
from app.engine.types import DEFAULT_CTX, ModelOptions

_SPLIT = {"none": 0, "layer": 1, "row": 2}
_LOAD = {"auto": -1, "none": 0, "mmap": 1, "mlock": 2, "mmap+mlock": 3, "dio": 4}
_FLASH = {"auto": -1, "off": 0, "on": 1}
_TYPES = {
    "f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "iq4_nl": 20, "bf16": 30,
}  # fmt: skip
_EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"  # llama.cpp's own, of --cpu-moe
MEASURED = 0  # load mode for measuring only: nothing is mapped


class ModelParams:
    """llama_model_params and the arrays that it points to; must be kept while the model is loaded."""

    def __init__(self, options: ModelOptions, devices: Sequence[OffloadDevice]) -> None:
        """`devices` get the layers, in this order. Raises SettingError if options contradict them."""
        self.value = llama_cpp.llama_model_default_params()
        self.value.n_gpu_layers = options.n_gpu_layers
        self.value.use_extra_bufts = options.repack
        self.value.split_mode = _SPLIT[options.split_mode]
        self.value.load_mode = _LOAD[options.load_mode]
        self.value.main_gpu = options.main_gpu
        self.value.load_mtp = options.mtp
        if options.split_mode == "none" and devices and options.main_gpu >= len(devices):
            raise SettingError(
                f"main_gpu cannot be {options.main_gpu}: there are {len(devices)} devices.",
                f"Allowed: 0 to {len(devices) - 1}.",
            )
        # Always an explicit list, even an empty one: llama.cpp still knows the workers of earlier pairs.
        self._devices = (ctypes.c_void_p * (len(devices) + 1))(*(device.handle for device in devices), None)
        self._point("devices", self._devices)
        shares = read_shares(options.tensor_split, len(devices))
        self._shares = (ctypes.c_float * llama_cpp.llama_max_devices())(*shares)
        if shares:
            self._point("tensor_split", self._shares)
        self._patterns = [pattern.encode() for pattern in expert_patterns(options)]
        self._overrides = (_Override * (len(self._patterns) + 1))(
            *(_Override(pattern, ggml.cpu_buffer_type()) for pattern in self._patterns)
        )
        if self._patterns:
            self._point("tensor_buft_overrides", self._overrides)

    def _point(self, field: str, array: Any) -> None:
        kind = dict(llama_cpp.llama_model_params._fields_)[field]
        setattr(self.value, field, ctypes.cast(array, kind))


class _Override(ctypes.Structure):
    """llama_model_tensor_buft_override; an empty entry ends the list."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


def read_shares(text: str, n_devices: int) -> list[float]:
    """The numbers of `tensor_split`, one for each of the first devices; raises SettingError."""
    if not text.strip():
        return []
    try:
        shares = [float(word) for word in re.split(r"[,/]", text)]
    except ValueError:
        shares = [math.nan]
    if not all(math.isfinite(share) and share >= 0 for share in shares) or not any(shares):
        raise SettingError(f"tensor_split cannot be {text!r}.", "Allowed: numbers from 0 on, such as 3,1.")
    if n_devices and len(shares) > n_devices:
        raise SettingError(
            f"tensor_split has {len(shares)} shares for {n_devices} device{'s' if n_devices > 1 else ''}.",
            "Give one for each device, in their order.",
        )
    return shares


def expert_patterns(options: ModelOptions) -> list[str]:
    """Patterns for the names of weights that stay in main memory."""
    if options.cpu_moe:
        return [_EXPERTS]
    return [rf"blk\.{layer}{_EXPERTS}" for layer in range(options.n_cpu_moe)]


def context_params(options: ModelOptions, n_ctx_train: int, snapshots: int) -> Any:
    """llama_context_params; `snapshots` as in Context."""
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = options.ctx_size or min(n_ctx_train or DEFAULT_CTX, DEFAULT_CTX)
    params.n_batch = min(options.batch_size, params.n_ctx)
    params.n_ubatch = min(options.ubatch_size, params.n_batch)
    params.n_threads = options.threads or threads_for(options.path)
    params.n_threads_batch = options.threads_batch or params.n_threads
    params.type_k = _TYPES[options.cache_type_k]
    params.type_v = _TYPES[options.cache_type_v]
    params.flash_attn_type = _FLASH[options.flash_attn]
    params.offload_kqv = options.kv_offload
    params.swa_full = options.swa_full
    # llama.cpp aborts the process if a pass cannot hold as many tokens as there are snapshots.
    params.n_rs_seq = max(0, min(snapshots, params.n_ubatch - 2))
    params.no_perf = True
    return params


_LAYER = re.compile(r"load_tensors: layer +(\d+) assigned to device (\S+?),")
_BUFFER = re.compile(r"^\w+: +(\S+)( .*)? buffer size = +([\d.]+) MiB")
_CONTEXT = re.compile(r"llama_context: n_ctx +=\s*(\d+)")
_PARTS = {"model": "weights", "compute": "compute"}  # others, such as KV, RS and output, are context
_MIB = 2**20
_REPACKED = ("_REPACK", "AMX")  # buffers of the CPU that hold copies of tensors of the file


class LoadReport:
    """Facts from the log of one load."""

    def __init__(self, lines: Iterable[str], devices: Sequence[OffloadDevice]) -> None:
        self._devices = devices
        self.layers: dict[int, str] = {}  # number -> device; the last is the output layer
        self.n_ctx = 0
        self.buffers: list[tuple[str, str, int]] = []  # device, part (a field of DeviceMemory), bytes
        for line in lines:
            self.add(line)

    def add(self, line: str) -> None:
        """Read a line; most say nothing about memory."""
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
        """The memory by device, in the order of the devices, the CPU last. `buffers` replace the report's
        own."""
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
