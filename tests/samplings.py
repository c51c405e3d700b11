"""Every sampler setting, switched on by itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.engine.params import params_of
from app.engine.sampling.dry import Breakers
from app.engine.sampling.sampler import Sampler
from app.engine.types import Sampling

WARM = Sampling(temperature=1)


def sampler_of(sampling: Sampling) -> Sampler:
    return Sampler(sampling, breakers=Breakers(np.zeros(8, np.bool_)))


def each_switched_on() -> Iterator[tuple[str, Sampling]]:
    """The settings that alone change probabilities, by name: filters, penalties, DRY and XTC."""
    for param in params_of(Sampling):
        for value in (param.low, param.high):
            if value is None or value == param.default or param.name in ("temperature", "seed"):
                continue
            sampling = Sampling(**{"temperature": 1, param.name: param.kind(value)})  # type: ignore[arg-type]
            sampler = sampler_of(sampling)
            if sampler.adjusts or not sampler.keeps_all:
                yield param.name, sampling
                break
