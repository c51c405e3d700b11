"""The energy that a run takes, where the system tells it: the processor's by RAPL, a card's by NVML."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
_NVML = "nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1"

Counter = Callable[[], float | None]
"""Joules used so far; None where it cannot be read now."""


class EnergyMeter:
    """Adds up the energy since it was made, over all counters that can be read.

    RAPL counts whole processor packages and NVML whole cards, with whatever else runs there.
    """

    def __init__(self, counters: Mapping[str, tuple[Counter, float]] | None = None) -> None:
        """`counters`: name -> (counter, the joules at which it begins again at 0; 0 where it does not)."""
        self._counters = _known() if counters is None else counters
        self._before = {name: read() for name, (read, _) in self._counters.items()}

    def joules(self) -> tuple[float | None, str]:
        """(joules, what was counted, such as "RAPL package-0"); (None, "") where nothing can be read."""
        used = {}
        for name, (read, limit) in self._counters.items():
            before, now = self._before[name], read()
            if before is not None and now is not None:
                used[name] = now - before + (limit if now < before else 0.0)
        return (sum(used.values()), ", ".join(used)) if used else (None, "")


def rapl_counters(folder: Path = POWERCAP) -> dict[str, tuple[Counter, float]]:
    """The counters of processor packages that may be read: often by the administrator only."""
    found: dict[str, tuple[Counter, float]] = {}
    for domain in sorted(folder.glob("intel-rapl:*")):
        if domain.name.count(":") != 1:
            continue  # a part of a package, counted with it
        counter = _file_counter(domain / "energy_uj")
        if counter() is not None:
            limit = _file_counter(domain / "max_energy_range_uj")() or 0.0
            found[f"RAPL {_name(domain)}"] = counter, limit
    return found


def nvml_counters() -> dict[str, tuple[Counter, float]]:
    """The counters of NVIDIA cards; none without their driver, or of cards that do not count."""
    try:
        nvml = ctypes.CDLL(_NVML)
        count = ctypes.c_uint()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.pointer(count)):
            return {}
    except (OSError, AttributeError):  # no driver, or one that is too old
        return {}
    found: dict[str, tuple[Counter, float]] = {}
    for index in range(count.value):
        card = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.pointer(card)):
            continue
        counter = _card_counter(nvml, card)
        if counter() is not None:
            found[f"NVML GPU {index}"] = counter, 0.0
    return found


@cache
def _known() -> dict[str, tuple[Counter, float]]:
    return rapl_counters() | nvml_counters()


def _name(domain: Path) -> str:
    try:
        return (domain / "name").read_text().strip()
    except OSError:
        return domain.name


def _file_counter(file: Path) -> Counter:
    """A counter of microjoules in a file."""

    def read() -> float | None:
        try:
            return int(file.read_text()) / 1e6
        except (OSError, ValueError):
            return None

    return read


def _card_counter(nvml: ctypes.CDLL, card: ctypes.c_void_p) -> Counter:
    """A card's counter of millijoules."""

    def read() -> float | None:
        used = ctypes.c_ulonglong()
        failed = nvml.nvmlDeviceGetTotalEnergyConsumption(card, ctypes.pointer(used))
        return None if failed else used.value / 1e3

    return read
