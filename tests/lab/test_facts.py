"""Energy counters: RAPL's files, counters that begin again, and systems that tell nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.lab.facts import EnergyMeter, nvml_counters, rapl_counters


def package(folder: Path, number: int, used: int) -> Path:
    """A package domain of RAPL with so many microjoules used."""
    domain = folder / f"intel-rapl:{number}"
    domain.mkdir(parents=True)
    (domain / "name").write_text(f"package-{number}\n")
    (domain / "energy_uj").write_text(f"{used}\n")
    (domain / "max_energy_range_uj").write_text("10000000\n")
    return domain


def test_packages_are_counted_and_their_parts_are_not_counted_twice(tmp_path: Path) -> None:
    first, second = package(tmp_path, 0, 1_000_000), package(tmp_path, 1, 9_000_000)
    part = tmp_path / "intel-rapl:0:0"
    part.mkdir()
    (part / "energy_uj").write_text("5")
    meter = EnergyMeter(rapl_counters(tmp_path))
    (first / "energy_uj").write_text("3500000")
    (second / "energy_uj").write_text("1000000")  # went round its end, at 10 J
    joules, counted = meter.joules()
    assert joules == pytest.approx(2.5 + 2.0)
    assert counted == "RAPL package-0, RAPL package-1"


def test_where_nothing_can_be_read_there_is_no_number(tmp_path: Path) -> None:
    package(tmp_path, 0, 0)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("")  # as a file that may not be read
    assert rapl_counters(tmp_path) == {}
    assert rapl_counters(tmp_path / "missing") == {}
    assert EnergyMeter({}).joules() == (None, "")


def test_a_counter_that_stops_telling_leaves_the_others() -> None:
    told: Iterator[float | None] = iter([1.0, None])
    steady = iter([2.0, 5.0])
    meter = EnergyMeter({"a": (lambda: next(told), 0.0), "b": (lambda: next(steady), 0.0)})
    assert meter.joules() == (3.0, "b")


class FakeNvml:
    """A driver with two cards, of which the second does not count."""

    def __init__(self) -> None:
        self.used = [4_000, 0]

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count[0] = len(self.used)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, card: Any) -> int:
        card[0] = 100 + index
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, card: Any, used: Any) -> int:
        used[0] = self.used[card.value - 100]
        return 0 if card.value == 100 else 3  # not supported


def test_cards_are_counted_in_millijoules(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeNvml()
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: driver)
    counters = nvml_counters()
    assert list(counters) == ["NVML GPU 0"]
    meter = EnergyMeter(counters)
    driver.used[0] += 2_500
    assert meter.joules() == (2.5, "NVML GPU 0")


def test_without_a_driver_no_card_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert nvml_counters() == {}
