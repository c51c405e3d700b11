"""What a pair will need on each device, how many layers fit, and what would need less. llama.cpp lays the
pair out without taking memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from app.engine.devices.memory import ALL_LAYERS, CPU, MARGIN, ModelMemory, PairMemory, fit_layers, freed
from app.engine.devices.placement import LighterPair, lighter_pairs, share_workers
from app.engine.native.context import SNAPSHOTS, Context
from app.engine.native.devices import OffloadDevice, list_devices
from app.engine.native.heads import MtpContext, context_of
from app.engine.native.library import AbortFlag, captured_report
from app.engine.native.load_params import LoadReport
from app.engine.native.model import Model, tensor_sizes
from app.engine.params import check_params
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
    """Measure what the model needs with these options, without loading it. `snapshots` as in Context;
    `target` is the model that a head drafts for.

    Raises the errors of loading: ModelFileError, PairError, SettingError, WorkerError.
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
    """Yield each cache's size, divided over the devices of its layers: all layers have the same size."""
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


def measure_pair(
    target: ModelOptions, draft: ModelOptions | None, loaded: Iterable[ModelMemory] = ()
) -> PairMemory:
    """Measure what the pair needs, and what is free after `loaded` is unloaded.

    Raises the errors of loading: ModelFileError, SettingError, WorkerError.
    """
    target, draft = _checked(target, draft)
    first = measure(target)
    second = measure(_behind(draft, first), 0, target) if draft else None
    return PairMemory(first, second, freed(list_devices(target.endpoints), loaded))


def fit_pair(
    target: ModelOptions,
    draft: ModelOptions | None,
    loaded: Iterable[ModelMemory] = (),
    before_each: Callable[[], None] = lambda: None,
    margin: int = MARGIN,
    as_asked: bool = False,
) -> tuple[PairMemory, ModelOptions, ModelOptions | None]:
    """Like `measure_pair`, with as many layers on the devices as fit. Also returns the options for that.

    `before_each` is called before each measurement and may raise to end the search. `margin` bytes stay free
    on every device. With `as_asked` no model gets more layers on devices than its options ask for.
    """
    target, draft = _checked(target, draft)
    devices = freed(list_devices(target.endpoints), loaded)

    def needs(options: ModelOptions, *behind: Any) -> Callable[[int], ModelMemory]:
        def need(layers: int) -> ModelMemory:
            before_each()
            if as_asked and options.n_gpu_layers >= 0:
                layers = options.n_gpu_layers if layers == ALL_LAYERS else min(layers, options.n_gpu_layers)
            return measure(replace(options, n_gpu_layers=layers), *behind)

        return need

    second = None
    if draft is not None:
        second = needs(_behind(draft, measure(replace(target, n_gpu_layers=0))), 0, target)
    fitted, beside = fit_layers(needs(target), second, devices, margin)
    chosen = replace(target, n_gpu_layers=fitted.layers_option)
    if draft is not None and beside is not None:
        draft = replace(draft, n_gpu_layers=beside.layers_option)
    return PairMemory(fitted, beside, devices), chosen, draft


def lighten_pair(
    target: ModelOptions,
    draft: ModelOptions | None,
    loaded: Iterable[ModelMemory] = (),
    before_each: Callable[[], None] = lambda: None,
    smaller: Iterable[ModelOptions] = (),
) -> tuple[LighterPair, ...]:
    """The changes of a pair that save enough memory, as in `lighter_pairs`; arguments as in `fit_pair`."""
    target, draft = _checked(target, draft)

    @cache
    def need(*asked: Any) -> ModelMemory:
        before_each()
        return measure(*asked)

    def needs(target: ModelOptions, draft: ModelOptions | None) -> tuple[ModelMemory, ...]:
        first = need(target)
        return (first,) if draft is None else (first, need(_behind(draft, first), 0, target))

    return lighter_pairs(target, draft, needs, freed(list_devices(target.endpoints), loaded), smaller)


def _checked(target: ModelOptions, draft: ModelOptions | None) -> tuple[ModelOptions, ModelOptions | None]:
    for options in (target, draft):
        if options is not None:
            check_params(options)
    return share_workers(target, draft)


def _behind(draft: ModelOptions, target: ModelMemory) -> ModelOptions:
    """The draft's options; its context is as large as the target's if it has no size of its own."""
    return draft if draft.ctx_size else replace(draft, ctx_size=target.n_ctx)
