"""Rows of logits: their largest values, found without sorting, and their exponentials."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from app.engine.sampling import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Places = NDArray[np.intp]

TOP = 10
"""The number of alternatives that a trace keeps."""

LARGEST_ROUNDING = 0.25
"""A larger change of the difference between two logits is not rounding. Batch widths were measured to change
it by up to 0.11 (BF16 weights), one wrong token in a cache by 0.4 to 0.8."""

PERHAPS_ROUNDING = 1.25
"""But some models round more: passes of Gemma 3 270M (Q4_K_M) changed it by up to 1.22. The audit measures
each model."""

_HEIGHT = 64  # values per group

# Here and in the drafters numpy is called through ufuncs (np.add.reduce, not sum): after a pass of the model
# its code is no longer in the processor's caches, and the methods' overhead costs more than the sum.


def copy_argmax(row: Floats, out: Floats) -> int:
    """Copy a row, shape [n]; returns the place of the first of its largest values, or of the first NaN."""
    if kernel.compiled is not None:
        return kernel.compiled.copy_argmax(row, out)
    out[:] = row
    return int(out.argmax())


def exponentials(x: Floats, shift: float, out: Floats | None = None) -> float:
    """The sum of exp(x - shift), shape [n]; they are written into `out`, if given. `shift` is the largest
    value."""
    if kernel.compiled is not None:
        return kernel.compiled.exponentials(x, shift, out)
    out = np.subtract(x, np.float32(shift), out=out)
    np.exp(out, out=out)
    # In the row's own precision, because numpy sums pairwise: the error is a few roundings.
    return float(np.add.reduce(out))


def softmax(x: Floats, temperature: float, out: Floats | None = None) -> Floats:
    """The probabilities at a temperature, shape [n], in `out`, if given; all NaN if a logit is NaN."""
    out = np.empty_like(x) if out is None else out
    if kernel.compiled is not None:
        return kernel.compiled.softmax(x, temperature, out)
    # The largest is subtracted first: a tiny temperature would overflow the quotient.
    np.subtract(x, np.maximum.reduce(x), out=out)
    if temperature != 1:
        out /= np.float32(temperature)
    np.exp(out, out=out)
    out *= np.float32(1 / float(np.add.reduce(out)))
    return out


def log_sum_exp(rows: Floats) -> list[float]:
    """The log of each row's sum of exponentials, shape [n, vocabulary] -> n numbers; NaN for a row with a NaN
    logit."""
    largest = np.maximum.reduce(rows, axis=1).tolist()
    return [top + math.log(exponentials(row, top)) for row, top in zip(rows, largest, strict=True)]


def top_of_row(row: Floats, n: int = TOP) -> tuple[list[int], list[float]]:
    """Indices and values of the `n` largest values of a row, shape [vocabulary], in the order of
    `top_of_rows`. Both lists are empty if a value is NaN."""
    if kernel.compiled is not None:
        return kernel.compiled.largest(row, n)
    if math.isnan(np.maximum.reduce(row)):
        return [], []
    (places,), (values,) = top_of_rows(row[None], n)
    return places, values


def top_of_rows(rows: Floats, n: int = TOP) -> tuple[list[list[int]], list[list[float]]]:
    """Indices and values of the `n` largest values of each row, largest first (ties: lower index first).

    `rows` is contiguous, shape [rows, vocabulary]. At least n values of a row, and few more, reach the n-th
    largest maximum of disjoint groups. So three quick passes over all rows replace a partition of each row.
    Both lists are empty for a row with NaN.
    """
    if kernel.compiled is not None:
        found = [kernel.compiled.largest(row, n) for row in rows]
        return [places for places, _ in found], [values for _, values in found]
    count, size = rows.shape
    height = max(1, math.isqrt(size) // 2)
    groups = size // height
    if groups <= n:
        reached = ~np.isnan(rows)
    else:
        # Group i has every `groups`-th value from i on: maxima of whole slices, which numpy computes fast. A
        # separate view, because a slice of several rows cannot be reshaped without a copy.
        step = rows.itemsize
        grouped: Floats = np.ndarray(
            (count, height, groups), rows.dtype, rows, strides=(size * step, groups * step, step)
        )
        maxima = np.maximum.reduce(grouped, axis=1)
        maxima.partition(groups - n, axis=1)
        reached = rows >= maxima[:, groups - n : groups - n + 1]
    places = reached.ravel().nonzero()[0]
    row_of, index = np.divmod(places, size)
    values = rows.ravel()[places]
    order = np.lexsort((index, -values, row_of))
    all_indices, all_values = index[order].tolist(), values[order].tolist()
    indices, tops, start = [], [], 0
    for length in np.bincount(row_of, minlength=count).tolist():
        end = start + min(n, length)
        indices.append(all_indices[start:end])
        tops.append(all_values[start:end])
        start += length
    return indices, tops


class Logits:
    """The logits of the remaining tokens, shape [n], with a fast search for the large ones.

    The maxima of groups cost one quick pass; only groups with a large enough maximum are searched.
    """

    def __init__(self, values: Floats) -> None:
        self.values = values
        count = len(values) // _HEIGHT
        self._maxima: Floats | None = None
        if count < _HEIGHT:
            self.largest = np.maximum.reduce(values)
            return
        # Group i has every `count`-th value from i on: maxima of whole rows, which numpy computes fast.
        self._groups = values[: _HEIGHT * count].reshape(_HEIGHT, count)
        self._rest = values[_HEIGHT * count :]
        self._maxima = np.maximum.reduce(self._groups, axis=0)
        self.largest = np.maximum.reduce(self._maxima)
        if len(self._rest):
            self.largest = np.maximum(self.largest, np.maximum.reduce(self._rest))
        """The largest logit; NaN if any is NaN."""

    @cached_property
    def weights(self) -> tuple[Floats, float]:
        """Probabilities times their sum, shape [n], and that sum; the largest weight is 1."""
        weights = np.empty_like(self.values)
        return weights, exponentials(self.values, self.largest, weights)

    def bound(self, n: int) -> np.float32:
        """A value that at least `n` logits reach, and few more."""
        values = self.values if self._maxima is None or len(self._maxima) < n else self._maxima
        values = values.copy()
        values.partition(len(values) - n)
        bound: np.float32 = values[len(values) - n]
        return bound

    def reaching(self, bound: np.float32) -> Places:
        """The places of the logits that reach `bound`, ascending."""
        places: Places
        groups = None if self._maxima is None else (self._maxima >= bound).nonzero()[0]
        if groups is None or len(groups) * 8 > len(self._groups[0]):
            places = (self.values >= bound).nonzero()[0]
            return places
        row, group = (self._groups.take(groups, axis=1) >= bound).nonzero()
        places = row * len(self._groups[0]) + groups[group]
        if len(self._rest):
            rest = (self._rest >= bound).nonzero()[0] + self._groups.size
            places = np.concatenate([places, rest])
        return places
