"""The devices and shares of a model's options, read and written. No widgets."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from app.engine.devices.placement import NO_DEVICE, without_worker_devices
from app.engine.types import ModelOptions, split_list

SEVERAL = ("layer", "row")  # split modes that use several devices


def device_option(chosen: Sequence[str], there: Sequence[str]) -> str:
    """The option `device` for these names, out of those that are `there`; empty for all of them."""
    if not chosen:
        return NO_DEVICE
    return "" if tuple(chosen) == tuple(there) else ",".join(chosen)


def read_shares(text: str, chosen: Sequence[str]) -> dict[str, float] | None:
    """Device name -> its share; None where they go by free memory, or where the text is no list of shares."""
    try:
        numbers = [float(word) for word in re.split(r"[,/]", text)] if text.strip() else []
    except ValueError:
        return None
    if not numbers or not chosen:
        return None
    numbers += [0.0] * (len(chosen) - len(numbers))  # as llama.cpp reads a list that is too short
    return dict(zip(chosen, numbers, strict=False))


def shares_option(shares: Mapping[str, float] | None, chosen: Sequence[str]) -> str:
    """The option `tensor_split`; a device without a share so far gets 1."""
    if shares is None or len(chosen) < 2:
        return ""
    return ",".join(f"{shares.get(name, 1.0):g}" for name in chosen)


def with_workers(options: ModelOptions, rpc: str) -> ModelOptions:
    """The options with these workers. Their devices are numbered in the order of `rpc`: where a worker is
    removed, the devices after it get other names, so options that refer to devices by name or position are
    dropped."""
    before, after = options.endpoints, split_list(rpc)
    if before == after:
        return options
    if options.device and after[: len(before)] == before:
        return dataclasses.replace(options, rpc=",".join(after))
    device = without_worker_devices(options.device)
    return dataclasses.replace(options, rpc=",".join(after), device=device, tensor_split="", main_gpu=0)
