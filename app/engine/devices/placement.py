"""The devices and workers that options name, and ways to load a pair with less memory. Needs no native
library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from app.engine.devices.memory import CPU, Device, ModelMemory, shortages, total_by_device
from app.engine.errors import ModelFileError, SettingError
from app.engine.types import UNQUANTISED, ModelOptions, split_list

NO_DEVICE = "none"
WORKERS = "RPC"  # what the names of workers' devices begin with


def chosen_names(device: str, there: Iterable[str]) -> tuple[str, ...]:
    """The device names in the option `device`, or all of `there` if it is empty. Names may be missing from
    `there`."""
    names = split_list(device)
    if not names:
        return tuple(there)
    return () if names == (NO_DEVICE,) else names


def share_workers(
    target: ModelOptions, draft: ModelOptions | None
) -> tuple[ModelOptions, ModelOptions | None]:
    """Give both models the workers of both, so that a worker's device has the same name in the whole pair."""
    if draft is None:
        return target, None
    rpc = ",".join(split_list(f"{target.rpc},{draft.rpc}"))
    return replace(target, rpc=rpc), replace(draft, rpc=rpc)


def without_worker_devices(device: str) -> str:
    """The option `device` after the workers changed, whose device numbers then differ.

    If names were given and none is left, the result is "no device": an empty option would mean all.
    """
    names = split_list(device)
    kept = [name for name in names if not name.startswith(WORKERS)]
    return ",".join(kept) if kept or not names else NO_DEVICE


LEAST_CTX = 512  # a smaller context has no room for a question and its answer
_CACHE = "q8_0"
_SPARE = 16  # a sixteenth of the free memory stays free: an engine process may not take more

Needs = Callable[[ModelOptions, ModelOptions | None], tuple[ModelMemory, ...]]
"""(target, draft) -> the memory of each; raises ModelFileError or SettingError for unusable options."""


class LighterPair(msgspec.Struct, frozen=True):
    """A pair that needs less memory."""

    words: str  # what differs, such as "the draft on the CPU"
    target: ModelOptions
    draft: ModelOptions | None
    saves: int = 0  # bytes


def lighter_pairs(
    target: ModelOptions,
    draft: ModelOptions | None,
    needs: Needs,
    devices: Iterable[Device],
    smaller: Iterable[ModelOptions] = (),
) -> tuple[LighterPair, ...]:
    """The pairs with one change that fit in the devices' memory and leave some free. If no single change is
    enough: the pair without a draft and with a smaller context, if that fits.

    `smaller` are drafts to try instead, best first. If the pair should fit already (but failed to load), all
    changes that save memory are returned.
    """
    devices = tuple(devices)
    models = needs(target, draft)
    before = total_by_device(models)
    short = [shortage.device for shortage in shortages(devices, models)]
    spared = [msgspec.structs.replace(device, free=device.free - device.free // _SPARE) for device in devices]

    def judged(pair: LighterPair) -> LighterPair | None:
        """The pair with what it saves; None if it does not help."""
        try:
            changed = needs(pair.target, pair.draft)
        except (ModelFileError, SettingError):
            return None  # llama.cpp cannot lay the model out so, for example with this format of its cache
        after = total_by_device(changed)
        saves = sum(max(0, before[name] - after.get(name, 0)) for name in short or before)
        helps = saves and not (short and shortages(spared, changed))
        return msgspec.structs.replace(pair, saves=saves) if helps else None

    def first(pairs: Iterable[LighterPair]) -> LighterPair | None:
        return next((found for pair in pairs if (found := judged(pair)) is not None), None)

    def sizes(n_ctx: int) -> list[int]:
        """Half of a context, a quarter, …; only half if it is not known how much memory is missing."""
        halves = [n_ctx >> n for n in range(1, n_ctx.bit_length()) if n_ctx >> n >= LEAST_CTX]
        return halves if short else halves[:1]

    context = sizes(models[0].n_ctx)
    kinds: list[Iterable[LighterPair]] = [
        (
            LighterPair(f"a context of {size:,} tokens", replace(target, ctx_size=size), _within(draft, size))
            for size in context
        )
    ]
    if draft is not None:
        kinds = [
            *([pair] for pair in _lighter_drafts(target, draft, models[1])),
            (LighterPair(f"{Path(other.path).name} as the draft", target, other) for other in smaller),
            (
                LighterPair(f"a context of {n:,} tokens for the draft", target, replace(draft, ctx_size=n))
                for n in sizes(models[1].n_ctx)
            ),
            *kinds,
        ]
    found = [pair for kind in kinds if (pair := first(kind)) is not None]
    if not found and draft is not None:
        smallest = first(
            LighterPair(f"no draft and a context of {size:,} tokens", replace(target, ctx_size=size), None)
            for size in context
        )
        found = [smallest] if smallest is not None else []
    return tuple(found)


def _lighter_drafts(target: ModelOptions, draft: ModelOptions, memory: ModelMemory) -> Iterator[LighterPair]:
    yield LighterPair("no draft", target, None)
    if any(usage.device != CPU and usage.total for usage in memory.memory):
        yield LighterPair("the draft on the CPU", target, replace(draft, n_gpu_layers=0, device=NO_DEVICE))
    if draft.cache_type_k in UNQUANTISED and draft.cache_type_v in UNQUANTISED:
        cached = replace(draft, cache_type_k=_CACHE, cache_type_v=_CACHE)
        yield LighterPair(f"the draft's KV cache as {_CACHE}", target, cached)


def _within(draft: ModelOptions | None, size: int) -> ModelOptions | None:
    """The draft with a context of at most `size` tokens."""
    return replace(draft, ctx_size=min(draft.ctx_size, size)) if draft is not None else None
