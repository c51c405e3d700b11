"""Draws by noise: the token with the largest log p + g is drawn; its luck g depends on the key.

If the g of all tokens are independent and have Gumbel's distribution, the winner is distributed as p ("the
Gumbel-max trick", Gumbel 1954). A token's luck depends on the key and its id alone, never on p. So two nearly
equal rows give the same token, unless their two best tokens are nearly equal. A draft that draws with the
target's luck mostly draws the target's token (Daliri, Musco and Suresh 2024, arxiv.org/abs/2408.07978).

g = -log t with independent exponential times t: log p + g is largest where t / p is smallest. One number
gives a block of 64 ids its first time (exponential with mean 1/64), and six of its bits say which token has
it. Every other token of the block adds its own time, exponential with mean 1, by its own number. (So 64
exponential times are distributed: the first, then what is left after it.) If a block's most probable token
could not win with the first time, the block needs no more numbers. For 151,936 tokens, a few thousand are
made.

Numbers are outputs of SplitMix64 (Steele, Lea and Flood 2014; known answers in the tests), by index: the
token's id, or 2**32 plus the block's. Logarithms are the C library's `log` of a double, here and in kernel.c;
all else is exact or rounded once by IEEE 754. So both find the same tokens and times, bit for bit. A
different C library may give logarithms that differ in the last bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from app.engine.sampling import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.intp]
    Words = NDArray[np.uint64]

BLOCK = 64  # tokens that share the first of their times
_FIRST = 1 << 32  # the index of the first block's number
_GAMMA = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1
_SLACK = 1.000000001  # more than the roundings of a product


def race(p: Floats, ids: Ids | None, key: int) -> tuple[float, int, float, int]:
    """The two smallest t / p of probabilities, shape [n]: ratio and place of the best, then of the second;
    place -1 if there is none.

    `ids` are the tokens, ascending, shape [n]; None: the places themselves. `p` need not sum to one.
    """
    if kernel.compiled is not None:
        return kernel.compiled.race(p, ids, key)
    tokens = np.arange(len(p)) if ids is None else ids
    starts = np.flatnonzero(np.diff(tokens // BLOCK, prepend=-1))
    blocks = tokens[starts] // BLOCK
    words = outputs(key, _FIRST + blocks)
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = (1 - _uniform(words)) / BLOCK / np.maximum.reduceat(p, starts)
    best = rival = (math.inf, -1)
    for at in bounds.argsort(kind="stable").tolist():
        if not bounds[at] < rival[0] * _SLACK:
            break
        start = int(starts[at])
        end = int(starts[at + 1]) if at + 1 < len(starts) else len(p)
        lead, leader = _lead(int(words[at]), int(blocks[at]))
        own = _uniform(outputs(key, tokens[start:end]))
        own[tokens[start:end] == leader] = 1  # log 1 is 0: it needs no time more
        with np.errstate(divide="ignore", invalid="ignore"):
            least = (lead + (1 - own)) / p[start:end]
        for place in least.argsort(kind="stable").tolist():
            if not least[place] < rival[0] * _SLACK:
                break
            runner = (lead - math.log(own[place])) / float(p[start + place]), start + place
            best, rival, _slowest = sorted((best, rival, runner))
    return *best, *rival


def luck(key: int, token: int) -> float:
    """The g of a token."""
    lead, leader = _lead(output(key, _FIRST + token // BLOCK), token // BLOCK)
    return -math.log(lead if token == leader else lead - math.log(_uniform_of(output(key, token))))


def _lead(word: int, block: int) -> tuple[float, int]:
    """A block's first time, and the token that has it."""
    return -math.log(_uniform_of(word)) / BLOCK, block * BLOCK + word % BLOCK


def output(key: int, counter: int) -> int:
    """Output number `counter`, from 0 on, of SplitMix64 from the seed `key`."""
    z = (key + (counter + 1) * _GAMMA) & _WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
    return z ^ z >> 31


def outputs(key: int, counters: Ids) -> Words:
    """The same for many, shape [n]."""
    z = counters.astype(np.uint64) * np.uint64(_GAMMA) + np.uint64((key + _GAMMA) & _WORD)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def _uniform_of(word: int) -> float:
    """Between 0 and 1, exclusive; one minus it is exact."""
    return ((word >> 12) + 0.5) * 2.0**-52


def _uniform(words: Words) -> NDArray[np.float64]:
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
