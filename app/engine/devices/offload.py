"""What a pair will need on each device, how many layers fit, and what would need less."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from app.engine.devices.memory import ALL_LAYERS, MARGIN, ModelMemory, PairMemory, fit_layers, freed
from app.engine.devices.placement import LighterPair, lighter_pairs, share_workers
from app.engine.native.devices import list_devices
from app.engine.native.memory import measure
from app.engine.params import check_params
from app.engine.types import ModelOptions


def measure_pair(
    target: ModelOptions, draft: ModelOptions | None, loaded: Iterable[ModelMemory] = ()
) -> PairMemory:
    """What the pair needs, and what is free once `loaded` is unloaded.

    Raises ModelFileError, SettingError, WorkerError as loading would.
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
    """As `measure_pair`, with as many layers on the devices as fit; also returns the options that ask for
    them.

    `before_each` is called before each measurement; what it raises ends the search. `margin` bytes are left
    free on every device. With `as_asked` no model gets more layers on devices than its options ask for.
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
