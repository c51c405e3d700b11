"""Fetches one item in the test's own process."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from app.hub.cache import Cache
from app.hub.downloads.item import Patience, Report, Waiting
from app.hub.errors import HubError

REPO = "owner/model-GGUF"
FILE = "model-Q4_K_M.gguf"
QUICK = Patience(stall=10.0, first_wait=0.0, longest_wait=0.0, attempts=3)
SIZE = 200_000
Kind = TypeVar("Kind")


def random_bytes(seed: int, size: int = SIZE) -> bytes:
    return random.Random(seed).randbytes(size)


@dataclass
class Fetched:
    reports: list[Report]
    path: Path

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [report for report in self.reports if isinstance(report, kind)]

    @property
    def waits(self) -> list[Waiting]:
        return [report for report in self.reports if isinstance(report, Waiting)]


Fetch = Callable[..., Fetched]


def partials(cache: Cache) -> list[Path]:
    return list(cache.folder.rglob("*.incomplete"))


def trouble(fetch: Callable[[], object]) -> HubError:
    with pytest.raises(HubError) as raised:
        fetch()
    return raised.value
