"""ngram-map-k and ngram-map-k4v: copy what followed an earlier match, and count the results.

Both draft what llama.cpp's `common/ngram-map.cpp` drafts for the same calls, including its hash collisions
and double counting. An index of positions and a dict of keys replace its scans.

`begin`, `propose` and `observe` correspond to its begin, draft and accept; accept is called only for the
drafter whose draft was verified. llama.cpp passes the last token of a context separately, as `id_last`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.engine.drafters import base
from app.engine.drafters.index import NgramBuckets, NgramIndex
from app.engine.drafters.ngram_simple import NgramSimpleParams
from app.engine.params import param

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_MOST_HITS = 16_380  # llama.cpp's counters stop here
_MOST_VALUES = 4  # continuations that ngram-map-k4v distinguishes after a key


@dataclass(frozen=True, slots=True)
class NgramMapKParams(NgramSimpleParams):
    """Settings of ngram-map-k; names and defaults are llama.cpp's.

    size_m: Copy at most this many tokens. Usually 8 to 48: longer copies help if long passages repeat.
    """

    size_m: int = param(48, low=1, high=1024, unit="tokens")


@dataclass(frozen=True, slots=True)
class NgramMapK4vParams(NgramMapKParams):
    """Settings of ngram-map-k4v; names and defaults are llama.cpp's.

    min_hits: Draft only after the match was seen this often. Usually 1 to 3: a higher number is safer, but
        starts drafting later.
    """

    min_hits: int = param(1, low=1, high=_MOST_HITS)


@dataclass(slots=True)
class _Value:
    """A continuation of a key: how often it was seen, and how far its last draft got."""

    place: int
    accepted: int
    count: int = 0


@dataclass(slots=True)
class _Key:
    """An n-gram that was drafted from, identified by the place where it was first found."""

    place: int
    accepted: int  # ngram-map-k: tokens accepted of its last draft
    hits: int = 0
    counted: int = 0  # ngram-map-k4v: occurrences up to here are in the counts of its values
    values: list[_Value] = field(default_factory=list)


class _NgramMap(base.Drafter):
    """The shared part of both drafters: finding the match and its key, and forgetting stale keys when a
    generation begins.

    llama.cpp keeps positions, not tokens, across generations. If the history is edited they point at
    different tokens, here too.
    """

    def __init__(self, size_n: int, size_m: int) -> None:
        self._n, self._m = size_n, size_m
        self._index = NgramIndex(size_n)
        self.reset()

    def reset(self) -> None:
        self._index.restart()
        self._buckets = NgramBuckets(self._index, self._n, self._m)
        self._keys: list[_Key] = []
        self._key_of: dict[tuple[int, ...], _Key] = {}
        self._drafted: _Key | _Value | None = None  # the source of the draft that is being verified

    def adjust(self, params: Any) -> None:
        """The sizes of n-grams and drafts stay: keys and counts depend on them."""
        return

    def begin(self, context: TokenIds, surroundings: base.RunContext) -> None:
        self._index.restart()
        self._index.follow(context)
        stale = self._buckets.begin(len(context) - 1)
        if stale is not None:
            self._keys = [key for key in self._keys if key.place < stale and self._survives(key, stale)]
        self._key_of = {}
        for key in self._keys:
            self._key_of.setdefault(self._ngram(key.place), key)

    def propose(self, context: TokenIds, k: int) -> base.Proposal:
        self._index.follow(context)
        self._drafted = None
        end = len(context) - 1  # llama.cpp passes the last token separately
        if end < 2 * self._n + self._m:
            return base.Proposal(end="the text is too short")
        match = self._buckets.find(end)
        if match == 0:
            return base.Proposal(end="no match")
        ngram = self._ngram(match)
        key = self._key_of.get(ngram)
        if key is None:
            key = self._key_of[ngram] = _Key(match, self._m)
            self._keys.append(key)
        key.hits += 1
        source = self._source(key, match)
        if isinstance(source, str):
            return base.Proposal(end=source)
        self._drafted = source
        return self._copy(match + self._n, source.accepted, k)

    def observe(self, context: TokenIds, proposal: base.Proposal, accepted: int) -> None:
        if self._drafted is not None and proposal.ids:
            self._drafted.accepted = accepted

    def _ngram(self, place: int) -> tuple[int, ...]:
        return tuple(self._index.tokens[place : place + self._n])

    def _copy(self, start: int, passed: int, k: int) -> base.Proposal:
        """Propose at most `k` of the tokens from `start` on, and at most `passed`, which is size_m at
        first."""
        if passed == 0:
            return base.Proposal(end="nothing was accepted last time")
        wanted = min(passed, k)
        if wanted < passed:
            why = base.ENOUGH
        else:
            why = "size_m" if passed == self._m else "only this many were accepted last time"
        return base.Proposal(ids=self._index.tokens[start : start + wanted], match=start, end=why)

    @abstractmethod
    def _source(self, key: _Key, match: int) -> _Key | _Value | str:
        """The source to draft from, which is credited with what passes, or the reason why nothing is
        drafted."""

    @abstractmethod
    def _survives(self, key: _Key, stale: int) -> bool:
        """Forget what `key` knows of positions at or after `stale`; False if the key itself is stale."""


class NgramMapK(_NgramMap):
    """Drafts the size_m tokens after a match; later only as many as passed the last time."""

    def __init__(self, params: NgramMapKParams) -> None:
        super().__init__(params.size_n, params.size_m)

    def _source(self, key: _Key, match: int) -> _Key:
        return key

    def _survives(self, key: _Key, stale: int) -> bool:
        return True


class NgramMapK4v(_NgramMap):
    """Drafts only if one continuation of the match is at least twice as frequent as the others together.

    As in llama.cpp, the tokens after the match are copied even if the frequent continuation follows a
    different place. Each draft counts the match itself once more.
    """

    def __init__(self, params: NgramMapK4vParams) -> None:
        super().__init__(params.size_n, params.size_m)
        self.adjust(params)

    def adjust(self, params: NgramMapK4vParams) -> None:
        self._min_hits = params.min_hits

    def _source(self, key: _Key, match: int) -> _Value | str:
        if key.hits < self._min_hits:
            return "min_hits"
        self._count(key, match)
        frequent = max(key.values, key=lambda value: value.count)  # the first of equals
        others = sum(value.count for value in key.values) - frequent.count
        if others and frequent.count < 2 * others:
            return "no continuation stands out"
        return frequent

    def _count(self, key: _Key, match: int) -> None:
        """Count the continuations at the key's occurrences from the last counted one up to `match`."""
        tokens, n, m = self._index.tokens, self._n, self._m
        places = [match] if match >= key.counted else []
        for place in self._index.earlier(match):
            if place < key.counted:
                break
            places.append(place)
        known = [tokens[value.place : value.place + m] for value in key.values]
        for place in reversed(places):
            start = place + n
            continuation = tokens[start : start + m]
            if continuation in known:
                value = key.values[known.index(continuation)]
                value.count = min(value.count + 1, _MOST_HITS)
            elif len(known) < _MOST_VALUES:
                key.values.append(_Value(start, self._m, count=1))
                known.append(continuation)
        key.counted = match

    def _survives(self, key: _Key, stale: int) -> bool:
        key.values = [value for value in key.values if value.place < stale]
        return bool(key.values)


K_KIND = base.StrategyKind(
    "ngram-map-k",
    NgramMapKParams,
    "Copies what followed a long match; the next time, only as much as was accepted before. Helps if long "
    "passages recur in a chat with small changes. Uses 0.3 kB of memory per token of the text.",
    keeps=base.Keeps(300),
    memory=("size_n", "size_m"),
    settings=("size_n=8:size_m=16", "size_n=4:size_m=8", "size_n=12:size_m=48"),
    length="size_m",
    copies=base.Copies.ALL,
    remembers=True,
    llama=base.LlamaFlags("ngram-map-k"),
    make=lambda params, _resources: NgramMapK(params),
)

K4V_KIND = base.StrategyKind(
    "ngram-map-k4v",
    NgramMapK4vParams,
    "Experimental in llama.cpp. Copies what followed a long match, if one continuation is much more "
    "frequent than the others. Helps if a passage has few continuations: logs, tables, generated code. Uses "
    "0.3 kB of memory per token of the text.",
    keeps=base.Keeps(300),
    memory=("size_n", "size_m"),
    settings=("size_n=8:size_m=16", "size_n=4:size_m=8", "size_n=8:size_m=16:min_hits=2"),
    length="size_m",
    copies=base.Copies.ALL,
    remembers=True,
    before="prompt-lookup",
    llama=base.LlamaFlags("ngram-map-k4v"),
    make=lambda params, _resources: NgramMapK4v(params),
)
