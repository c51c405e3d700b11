"""Draws that can be walked over, for the verifiers' laws by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.engine.sampling import noise

DRAWN: list[tuple[float, float, float]] = []
"""The draws since this was cleared: u, and the interval that it fell into."""


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of races, whose law test_noise.py tests, tokens are drawn by the interval that the key falls
    into: all that can be drawn is then found by going from 0 to 1."""

    def cumulative(p: np.ndarray, ids: np.ndarray | None, key: float) -> tuple[float, int, float, int]:
        u = key if isinstance(key, float) else key * 2.0**-64
        edges = np.concatenate([[0.0], np.cumsum(p, dtype=np.float64)])
        edges /= edges[-1]
        place = int(edges.searchsorted(u, side="right")) - 1
        DRAWN.append((u, float(edges[place]), float(edges[place + 1])))
        return 1.0, place, math.inf, -1

    monkeypatch.setattr(noise, "race", cumulative)
