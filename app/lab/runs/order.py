"""The order in which lanes take turns, so that no lane gains by when it runs."""

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


def _williams(n: int) -> list[list[int]]:
    """n rows of 0 to n - 1. Each number is once in every column; for an even n it follows every other number
    once, for an odd n half of them twice."""
    first = [(n - at // 2) % n if at % 2 == 0 else at // 2 + 1 for at in range(n)]
    return [[(place + shift) % n for place in first] for shift in range(n)]
