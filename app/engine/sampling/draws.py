"""Draws keyed by (seed, position, purpose): the same key always gives the same draw.

So `match` gives the tokens of plain sampling, whatever is drafted, and every verdict of a trace can be
recomputed. Tokens are drawn by noise (`noise.py`) from the key and the token's id.
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum

_pack = struct.Struct("<qqqq").pack


class Purpose(IntEnum):
    """The decision that a draw makes. Draws with different purposes are independent."""

    TOKEN = 0  # a token from the target's own distribution
    ACCEPT = 1  # whether a drafted token passes
    RESIDUAL = 2  # the token in place of a rejected one
    DRAFT = 3  # a token of a sampled draft


class Draws:
    """The draws of one answer."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def key(self, position: int, purpose: Purpose, round_start: int = 0) -> int:
        """Return 64 random bits, the key of the noise that a token is drawn by.

        `position` is the token's index in the answer. A position can be drafted again in a later round, whose
        draft length may depend on the earlier draw. `round_start` keeps both draws independent.
        """
        key = _pack(self.seed, position, purpose, round_start)
        return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")

    def uniform(self, position: int, purpose: Purpose, round_start: int = 0) -> float:
        """Return a number in [0, 1) with 53 random bits."""
        return (self.key(position, purpose, round_start) >> 11) * 2.0**-53
