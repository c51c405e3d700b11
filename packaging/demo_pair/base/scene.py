"""What a dialogue is made of, and how one is drawn.

A part of all wordings, names and words is never seen in training: the evaluation draws from it alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from zlib import crc32

HELD_OUT_SHARE = 8  # one of so many


@dataclass(frozen=True, slots=True)
class Expect:
    """What an answer must satisfy; what is left empty is not asked for."""

    text: str = ""
    """The whole answer."""
    phrases: tuple[str, ...] = ()
    """Each occurs, in this order."""
    given: str = ""
    """Code that runs before that of the answer."""
    calls: tuple[tuple[str, str], ...] = ()
    """(expression, `repr` of its value) once the code blocks of the answer have run."""
    value: object = None
    """What the answer's JSON block holds."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question, its answer, and what any answer to it must satisfy."""

    user: str
    assistant: str
    expect: Expect = Expect()


Scene = list[Turn]
Maker = Callable[["Dice"], Scene]


@cache
def part(options: tuple[str, ...], held_out: bool) -> tuple[str, ...]:
    """The options kept from training, or all others. One alone is in both."""
    if len(options) == 1:
        return options
    ordered = sorted(options, key=lambda option: crc32(option.encode()))
    cut = max(1, len(options) // HELD_OUT_SHARE)
    kept = set(ordered[:cut] if held_out else ordered[cut:])
    return tuple(option for option in options if option in kept)


def wordings(*patterns: str) -> tuple[str, ...]:
    """All readings of patterns such as `(Copy|Repeat) this( text|):`."""
    found: dict[str, None] = {}
    for pattern in patterns:
        pieces = [piece.split("|") for piece in re.split(r"[()]", pattern)]
        found.update(("".join(reading), None) for reading in product(*pieces))
    return tuple(found)


class Dice(Random):
    """Random choices for training, or with `held_out` for the evaluation."""

    def __init__(self, seed: int, *, held_out: bool = False) -> None:
        super().__init__(seed)
        self.held_out = held_out

    def pick(self, options: tuple[str, ...]) -> str:
        """One of the options that belong to this side."""
        return self.choice(part(options, self.held_out))

    def fresh(self, make: Callable[[], str]) -> str:
        """What `make` makes, repeated until it belongs to this side."""
        while True:
            made = make()
            if (crc32(made.encode()) % HELD_OUT_SHARE == 0) == self.held_out:
                return made

    def some(self, options: Sequence[str], least: int, most: int) -> list[str]:
        """So many different ones, in random order."""
        return self.sample(options, self.randint(least, most))


def join(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def fence(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"


def ask(dice: Random, request: str) -> str:
    """The request as people type it: now and then without a capital or a full stop."""
    roll = dice.random()
    if roll < 0.08 and request[1:2].islower():
        request = request[0].lower() + request[1:]
    if roll < 0.12 and request.endswith("."):
        request = request[:-1]
    if 0.12 <= roll < 0.15 and request.endswith("."):
        request = f"{request} Thanks."
    return request
