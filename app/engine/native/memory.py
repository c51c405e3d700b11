"""What a model will need on each device, before it is loaded.

llama.cpp lays everything out as for a real load, without allocating, and reports the caches and compute
buffers. It does not report the weights then: they are counted here, from the file's list of tensors and the
layers that llama.cpp put on each device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from app.engine.devices.memory import CPU, ModelMemory
from app.engine.native.context import SNAPSHOTS, Context
from app.engine.native.devices import OffloadDevice
from app.engine.native.heads import MtpContext, context_of
from app.engine.native.library import AbortFlag, captured_report
from app.engine.native.load_params import LoadReport
from app.engine.native.model import Model
from app.engine.native.tensors import tensor_sizes
from app.engine.types import ModelOptions

_BLOCK = re.compile(r"blk\.(\d+)\.")
_OUTPUT = re.compile(r"output")  # output.weight, output_norm.weight
_EMBEDDING = "token_embd.weight"  # also the output layer's weights, if it has none of its own
_OVERRIDDEN = re.compile(r"tensor (\S+) \(.*\) buffer type overridden to (\S+)")
_UNUSED = re.compile(r"model has unused tensor (\S+)")  # such as those of an MTP head
_CACHE_LAYER = re.compile(r"llama_kv_cache: layer +\d+: dev = (\S+)")
_CACHE_SIZE = re.compile(r"llama_kv_cache: size = +([\d.]+) MiB")
_MIB = 2**20


def measure(
    options: ModelOptions, snapshots: int = SNAPSHOTS, target: ModelOptions | None = None
) -> ModelMemory:
    """Measure what the model needs with these options; `snapshots` as in Context. `target` is the model that
    a head drafts for. Nothing is loaded.

    Raises ModelFileError, PairError, SettingError, WorkerError as loading would.
    """
    abort = AbortFlag()
    with ExitStack() as opened:

        def lay_out(options: ModelOptions) -> Model:
            model = Model(options, only_measured=True)
            opened.callback(model.close)
            return model

        model, below = lay_out(options), None
        if model.is_head and target is not None:
            below = Context(lay_out(target), target, abort)
            opened.callback(below.close)
        with captured_report() as context_log:
            context = context_of(model, options, abort, snapshots, below)
            opened.callback(context.close)
            if MtpContext.is_in(model) and not model.is_head:
                opened.callback(MtpContext(model, options, abort, context).close)
        log = [*model.log, *context_log]
        report = LoadReport(log, model.devices)
        # Buffers of absent caches are empty; those of recurrent states are real.
        buffers = [buffer for buffer in report.buffers if buffer[1] in ("context", "compute")]
        buffers += [(device, "context", size) for device, size in _caches(log, model.devices)]
        buffers += [(device, "weights", size) for device, size in _weights(model.path, report, log)]
        return report.memory(buffers)


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
