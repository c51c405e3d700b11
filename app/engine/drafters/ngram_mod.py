"""ngram-mod: one pool of hashed n-grams for all chats; an entry holds the token that last followed its
n-gram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.engine.drafters.base import ENOUGH, Drafter, Keeps, LlamaFlags, Proposal, RunContext, StrategyKind
from app.engine.params import param

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.types import TokenIds

POOL_SIZE = 4 * 1024 * 1024  # entries
_MULTIPLIER = 6364136223846793005
_MASK = POOL_SIZE - 1
_CHUNK = 32  # tokens: new n-grams are learned once the last learned one began this far back
_ENTRY_BYTES = 120  # of memory for an entry in use
_FULL = 0.25  # share of the pool in use above which a new generation starts with an empty one
_LOW = 0.25  # accepted share of a draft below which the draft is bad
_BAD_DRAFTS = 5  # in a row: the pool is emptied


@dataclass(frozen=True, slots=True)
class NgramModParams:
    """Settings of ngram-mod; names and defaults are llama.cpp's.

    n_match: Match this many of the latest tokens. Usually 16 to 32: below 16 more matches are found, but they
        often mislead.
    n_min: Discard drafts shorter than this. Usually 2 to 48: a high limit leaves only long repetitions, which
        are rarely wrong.
    n_max: Draft at most this many tokens per round. Usually 16 to 64: longer drafts help if long passages
        repeat, and mixture-of-experts models need them.
    """

    n_match: int = param(24, low=1, high=1024, unit="tokens")
    n_min: int = param(48, low=0, high=1024, unit="tokens")
    n_max: int = param(64, low=1, high=1024, unit="tokens")


class NgramModPool:
    """n-gram -> the token that followed it last; n-grams that collide share an entry.

    Only used entries take memory: to write to new pages of a large array would take longer than a pass of a
    small model.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        powers = [pow(_MULTIPLIER, power, 1 << 32) for power in range(n + 1)]
        self._weights = np.array(powers[-2::-1], np.uint32)
        self._leaving = powers[-1]  # weight of the token that leaves the window
        self._followers: dict[int, int] = {}  # entry -> token

    def clear(self) -> None:
        self._followers = {}

    @property
    def occupancy(self) -> float:
        return len(self._followers) / POOL_SIZE

    def places(self, tokens: TokenIds) -> NDArray[np.uint32]:
        """The entry of each n-gram of `tokens` (shape [m], m >= n): shape [m - n + 1].

        llama.cpp's hash: h = h * multiplier + token over the n tokens in 64 bits, modulo the pool's size.
        That is a power of two, so the sum over token * multiplier^distance in 32 bits has the same low bits.
        """
        return np.correlate(tokens.astype(np.uint32), self._weights, "valid") & np.uint32(_MASK)

    def add(self, tokens: TokenIds) -> None:
        """Learn every n-gram of `tokens` that is followed by a token there, in order."""
        followers = tokens[self._n :].tolist()
        self._followers.update(zip(self.places(tokens[:-1]).tolist(), followers, strict=True))

    def follow(self, window: TokenIds, count: int) -> list[int]:
        """Return up to `count` tokens that continue `window`, shape [n]; ends at an n-gram that the pool does
        not know."""
        place = int(self.places(window)[0])
        tokens: list[int] = window.tolist()
        for leaving in range(count):
            token = self._followers.get(place)
            if token is None:
                break
            tokens.append(token)
            place = (place * _MULTIPLIER + token - tokens[leaving] * self._leaving) & _MASK
        return tokens[self._n :]


class NgramMod(Drafter):
    """llama.cpp's ngram-mod, call for call (common/speculative.cpp, common/ngram-mod.cpp).

    llama.cpp's begin and draft read the tokens before the last one and take that separately. `begin` and
    `propose` get it at the end of the context. Its accept is called only for the strategy that drafted:
    `observe` with an empty proposal changes nothing. As in llama.cpp, drafts are cut to `k` afterwards: n_min
    and the accepted share count the tokens before the cut.

    The pool is kept across `begin`, so that chats learn from each other. It is cleared if over a quarter of
    it is in use, or under a quarter was accepted in five drafts in a row.
    """

    def __init__(self, params: NgramModParams) -> None:
        self._params = params
        self.pool = NgramModPool(params.n_match)
        self.reset()

    def reset(self) -> None:
        self.pool.clear()
        self._read = 0  # n-grams that start before this place are learned
        self._drafted = 0  # length of the last draft, uncut
        self._low = 0  # bad drafts in a row
        self._doubted = False  # the pool must be emptied before its next use
        self._alone = False  # the pool holds only this text's n-grams before `_read`

    def adjust(self, params: NgramModParams) -> None:
        self._params = params

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        if self._doubted:
            self._empty()
        self._read, self._drafted, self._alone = 0, 0, False
        if len(context) > self._params.n_match:
            self._learn(context[:-1])
            if self.pool.occupancy > _FULL:
                self.pool.clear()

    def propose(self, context: TokenIds, k: int) -> Proposal:
        self._drafted = 0
        n, n_min, n_max = self._params.n_match, self._params.n_min, self._params.n_max
        text = context[:-1]
        if len(text) < n:
            return Proposal(end="no match")
        learned_up_to = self._read
        if self._doubted:
            learned_up_to = 0
            # Emptying a pool of this text alone and filling it from the whole text would change nothing.
            if not self._alone or len(text) <= _CHUNK:
                self._empty()
            self._doubted = False
        if learned_up_to + _CHUNK < len(text):
            self._learn(text)
        ids = self.pool.follow(context[-n:], n_max)
        if len(ids) < max(1, min(n_min, n_max)):
            return Proposal(end="shorter than n_min" if ids else "no match")
        self._drafted = len(ids)
        if len(ids) > k:
            return Proposal(ids=ids[:k], end=ENOUGH)
        return Proposal(ids=ids, end="n_max" if len(ids) == n_max else "no further match")

    def observe(self, context: TokenIds, proposal: Proposal, accepted: int) -> None:
        if not proposal.ids:
            return
        if accepted < _LOW * self._drafted:
            self._low += 1
        else:
            self._low = 0
        if self._low == _BAD_DRAFTS:
            self._low, self._doubted = 0, True

    def _learn(self, text: TokenIds) -> None:
        """Add the n-grams that became complete since the last call."""
        unread = text[self._read :]
        if len(unread) > self._params.n_match:
            self.pool.add(unread)
        self._read = len(text) - self._params.n_match

    def _empty(self) -> None:
        self.pool.clear()
        self._read, self._doubted, self._alone = 0, False, True


KIND = StrategyKind(
    "ngram-mod",
    NgramModParams,
    "Remembers what followed each run of tokens, in one pool for all chats. Helps if long passages recur: "
    "code edits, summaries, reasoning repeated in the answer. 10,000 tokens take 1.2 MB of memory, a full "
    "pool 126 MB.",
    keeps=Keeps(fixed=int(_FULL * POOL_SIZE) * _ENTRY_BYTES),
    least="",  # its n_min looks at the uncut draft, and never asks for more than n_max
    memory=("n_match",),
    settings=("n_match=16:n_min=4:n_max=32", "n_match=8:n_min=2:n_max=16", "n_match=24:n_min=48"),
    remembers=True,
    before="suffix",
    llama=LlamaFlags("ngram-mod"),
    make=lambda params, _resources: NgramMod(params),
)
