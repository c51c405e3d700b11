"""The arithmetic of statistics, which are folds over rounds: ratios, histograms, copies and sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from itertools import accumulate, zip_longest
from math import fsum
from typing import Any

from app.engine.types import Round


def ratio(part: float, whole: float) -> float | None:
    """None without a denominator."""
    return part / whole if whole > 0 else None


def judged_singly(round: Round) -> bool:
    """Whether no drafted token was judged as part of a block."""
    return {token.h for token in round.drafted} <= {None}  # sooner than `all` over a generator


def count_at(histogram: list[int], at: int) -> None:
    """Add 1 at an index, which may lie behind the end."""
    if at >= len(histogram):
        histogram.extend([0] * (at + 1 - len(histogram)))
    histogram[at] += 1


def at_least(histogram: Sequence[int]) -> tuple[int, ...]:
    """For each value from 1 on, how many are at least that."""
    return tuple(accumulate(reversed(histogram[1:])))[::-1]


def copy_of(value: Any) -> Any:
    """A number, or a copy of a list, of a dictionary, of statistics."""
    if isinstance(value, dict):
        return {key: copy_of(part) for key, part in value.items()}
    if isinstance(value, list):
        return value.copy()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(*(copy_of(getattr(value, field.name)) for field in fields(value)))
    return value


def sum_of(values: Sequence[Any]) -> Any:
    """The sum of numbers, or element by element of lists, dictionaries and statistics."""
    first = values[0]
    if is_dataclass(first) and not isinstance(first, type):
        columns = ([getattr(value, field.name) for value in values] for field in fields(first))
        return type(first)(*map(sum_of, columns))
    if isinstance(first, dict):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: sum_of([value[key] for value in values if key in value]) for key in keys}
    if isinstance(first, list):
        return [sum(column) for column in zip_longest(*values, fillvalue=0)]
    return fsum(values) if isinstance(first, float) else sum(values)
