"""The order of lanes and of prompts, so that nothing is measured better or worse by when it runs."""

from __future__ import annotations

import random
from collections.abc import Sequence


class TurnOrder:
    """An order of the lanes for every (repeat, prompt).

    Machines warm up, slow down and are disturbed: a lane that runs first, last, or always after the same
    heavy lane is measured with an error that repeats do not average out. So the orders are drawn at random,
    but not freely: in a few repeats, chance would favour some lane. The cells of n repeats by n prompts share
    a Latin square, in which each of n lanes has every place once over the repeats of a prompt and once over
    the prompts of a repeat. It is a Williams square (Williams 1949): every lane also follows every other lane
    equally often; for an odd n it follows half of them twice. The seed assigns lanes and rows anew for every
    square: the same experiment runs in the same order.
    """

    def __init__(self, lanes: Sequence[int], seed: int) -> None:
        self._lanes = tuple(lanes)
        self._seed = seed
        self._squares: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def turns(self, repeat: int, prompt: int) -> tuple[int, ...]:
        """The lanes in the order in which they answer this prompt in this repeat."""
        count = len(self._lanes)
        square = self._square(repeat // count, prompt // count)
        return square[(repeat + prompt) % count]

    def _square(self, down: int, across: int) -> list[tuple[int, ...]]:
        known = self._squares.get((down, across))
        if known is None:
            drawn = random.Random(f"{self._seed} {down} {across}")
            lanes = drawn.sample(self._lanes, len(self._lanes))
            known = [tuple(lanes[place] for place in row) for row in _williams(len(lanes))]
            drawn.shuffle(known)
            self._squares[down, across] = known
        return known


def mixed(count: int, repeat: int, seed: int) -> tuple[int, ...]:
    """The order of 0 to `count` - 1, prompts, in a repeat: a row of such a square, in which each has every
    place once in `count` repeats. A machine that becomes slower then meets no kind of prompt alone."""
    if not count:
        return ()
    drawn = random.Random(f"{seed} prompts {repeat // count}")
    names, shifts = (drawn.sample(range(count), count) for _ in range(2))
    return tuple(names[place] for place in _row(count, shifts[repeat % count]))


def _williams(n: int) -> list[list[int]]:
    """n rows of 0 to n - 1. Each number is once in every column; for an even n it follows every other number
    once, for an odd n half of them twice."""
    return [_row(n, shift) for shift in range(n)]


def _row(n: int, shift: int) -> list[int]:
    return [((n - at // 2 if at % 2 == 0 else at // 2 + 1) + shift) % n for at in range(n)]
