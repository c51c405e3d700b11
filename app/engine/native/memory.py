"""What a model will need on each device, before it is loaded.

llama.cpp lays everything out as for a real load, without allocating, and reports the caches and compute
buffers. It does not report the weights then: they are counted here, from the file's list of tensors and the
layers that llama.cpp put on each device.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import llama_cpp

from app.engine.compat import HEAD_STRATEGIES
from app.engine.devices.memory import CPU, ModelMemory
from app.engine.errors import ModelFileError
from app.engine.native.context import SNAPSHOTS, explain_context
from app.engine.native.devices import OffloadDevice, chosen_devices
from app.engine.native.library import captured_log, captured_report, read_metadata
from app.engine.native.load_params import MEASURED, LoadReport, ModelParams, context_params
from app.engine.native.model import check_file, explain_failure
from app.engine.native.tensors import architecture_of, refuse_head, tensor_sizes
from app.engine.types import ModelOptions

_BLOCK = re.compile(r"blk\.(\d+)\.")
_OUTPUT = re.compile(r"output")  # output.weight, output_norm.weight
_EMBEDDING = "token_embd.weight"  # also the output layer's weights, if it has none of its own
_OVERRIDDEN = re.compile(r"tensor (\S+) \(.*\) buffer type overridden to (\S+)")
_UNUSED = re.compile(r"model has unused tensor (\S+)")  # such as those of an MTP head
_CACHE_LAYER = re.compile(r"llama_kv_cache: layer +\d+: dev = (\S+)")
_CACHE_SIZE = re.compile(r"llama_kv_cache: size = +([\d.]+) MiB")
_MIB = 2**20


def measure(options: ModelOptions, snapshots: int = SNAPSHOTS) -> ModelMemory:
    """Measure what the model needs with these options; `snapshots` as in Context. Nothing is loaded.

    Raises ModelFileError, SettingError, WorkerError as loading would.
    """
    path = Path(options.path)
    check_file(path)
    devices = chosen_devices(options)
    with captured_report() as log:
        _lay_out(options, devices, path, snapshots)
    report = LoadReport(log, devices)
    # Buffers of absent caches are empty; those of recurrent states are real.
    buffers = [buffer for buffer in report.buffers if buffer[1] in ("context", "compute")]
    buffers += [(device, "context", size) for device, size in _caches(log, devices)]
    buffers += [(device, "weights", size) for device, size in _weights(path, report, log)]
    return report.memory(buffers)


def _lay_out(options: ModelOptions, devices: Sequence[OffloadDevice], path: Path, snapshots: int) -> None:
    params = ModelParams(options, devices)
    params.value.no_alloc = True
    params.value.load_mode = MEASURED
    with captured_log() as lines:
        model = llama_cpp.llama_model_load_from_file(os.fsencode(path), params.value)
        if not model:
            raise explain_failure(path.name, lines)
        try:
            refuse_head(path, partial(read_metadata, model))
        except ModelFileError:
            llama_cpp.llama_model_free(model)
            raise
        if architecture_of(path, partial(read_metadata, model)) in HEAD_STRATEGIES:
            # Its graph needs the target's context: what its one layer caches is left out.
            llama_cpp.llama_model_free(model)
            return
        n_ctx_train = max(0, int(llama_cpp.llama_model_n_ctx_train(model)))
        asked = context_params(options, n_ctx_train, snapshots)
        context = llama_cpp.llama_init_from_model(model, asked)
        if context:
            llama_cpp.llama_free(context)
        llama_cpp.llama_model_free(model)
        if not context:
            raise explain_context(path.name, asked.n_ctx, lines)


def _caches(log: list[str], devices: Sequence[OffloadDevice]) -> Iterator[tuple[str, int]]:
    """Yield each cache's size, divided over the devices of its layers, which are all of one size."""
    names = LoadReport([], devices)
    layers: list[str] = []
    for line in log:
        if found := _CACHE_LAYER.search(line):
            layers.append(names.device(found[1]))
        elif found := _CACHE_SIZE.search(line):
            size = float(found[1]) * _MIB
            yield from ((device, round(size / len(layers))) for device in layers)
            layers = []


def _weights(path: Path, report: LoadReport, log: list[str]) -> Iterator[tuple[str, int]]:
    """Yield each tensor's device and size."""
    stay = {found[1] for line in log if (found := _OVERRIDDEN.search(line))}
    unused = {found[1] for line in log if (found := _UNUSED.search(line))}
    output = report.layers.get(report.last_layer, CPU)
    tensors = {name: size for name, size in tensor_sizes(path) if name not in unused}
    for name, size in tensors.items():
        block = _BLOCK.match(name)
        if name in stay:
            yield CPU, size
        elif block:
            yield report.layers.get(int(block[1]), CPU), size
        else:
            yield output if _OUTPUT.match(name) else CPU, size
    if "output.weight" not in tensors and output != CPU:
        yield output, tensors.get(_EMBEDDING, 0)
