"""The devices and workers that options name. Needs no native library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app.engine.types import ModelOptions, split_list

NO_DEVICE = "none"
WORKERS = "RPC"  # what the names of workers' devices begin with


def chosen_names(device: str, there: Iterable[str]) -> tuple[str, ...]:
    """The names that the option `device` means, all of `there` if it is empty; a name need not be in
    `there`."""
    names = split_list(device)
    if not names:
        return tuple(there)
    return () if names == (NO_DEVICE,) else names


def share_workers(
    target: ModelOptions, draft: ModelOptions | None
) -> tuple[ModelOptions, ModelOptions | None]:
    """Give both models the workers of either: a worker's device then has one name in the whole pair."""
    if draft is None:
        return target, None
    rpc = ",".join(split_list(f"{target.rpc},{draft.rpc}"))
    return replace(target, rpc=rpc), replace(draft, rpc=rpc)


def without_worker_devices(device: str) -> str:
    """The option `device` after the workers changed: their devices are numbered, so the old names are wrong.

    If names were given and none stays, the result is "no device": an empty option would mean all of them.
    """
    names = split_list(device)
    kept = [name for name in names if not name.startswith(WORKERS)]
    return ",".join(kept) if kept or not names else NO_DEVICE
