"""ngram-simple: copy what followed the last n tokens at their latest earlier occurrence, as llama.cpp
does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.engine.drafters import base
from app.engine.drafters.index import NgramIndex
from app.engine.params import param

if TYPE_CHECKING:
    from app.engine.types import TokenIds


@dataclass(frozen=True, slots=True)
class NgramSimpleParams:
    """Settings of ngram-simple; names and defaults are llama.cpp's.

    size_n: Match this many of the latest tokens. Usually 3 to 12: shorter matches are found more often, but
        mislead more often.
    size_m: Copy at most this many tokens. Usually 8 to 48: longer copies help if long passages repeat. Below
        size_n nothing is ever drafted.
    min_hits: No effect: llama.cpp accepts it for this strategy and ignores it.
    """

    size_n: int = param(12, low=1, high=1024, unit="tokens")
    size_m: int = param(48, low=1, high=1024, unit="tokens")
    min_hits: int = param(1, low=1, high=16_380)


class NgramSimple(base.Drafter):
    """Drafts what llama.cpp's `common_ngram_simple_draft` drafts, from an index instead of a scan.

    Only the latest match counts, and at least size_n tokens must follow it. A match at the very start of the
    text is ignored, and so is one that ends at the second last token.
    """

    def __init__(self, params: NgramSimpleParams) -> None:
        self.adjust(params)

    def adjust(self, params: NgramSimpleParams) -> None:
        self._params = params
        self._index = NgramIndex(params.size_n)

    def reset(self) -> None:
        self._index.restart()

    def begin(self, context: TokenIds, surroundings: base.RunContext) -> None:
        self._index.restart()
        self._index.follow(context)

    def propose(self, context: TokenIds, k: int) -> base.Proposal:
        self._index.follow(context)
        n, m = self._params.size_n, self._params.size_m
        end = len(context) - 1  # llama.cpp passes the last token separately, and never copies it
        if end <= n + m + 1:
            return base.Proposal(end="the text is too short")
        last = len(context) - n
        match = next((place for place in self._index.earlier(last) if place < last - 1), 0)
        if match == 0:
            return base.Proposal(end="no match")
        start = match + n
        count = min(m, end - start)
        if count < n:
            return base.Proposal(end="the match leaves too little to copy")
        wanted = min(count, k)
        if wanted < count:
            why = base.ENOUGH
        else:
            why = "size_m" if count == m else "end of the text"
        return base.Proposal(ids=self._index.tokens[start : start + wanted], match=start, end=why)


KIND = base.StrategyKind(
    "ngram-simple",
    NgramSimpleParams,
    "Copies long stretches that followed a long match. Helps if the answer repeats much of its prompt word "
    "for word: code edits, corrections. Uses 0.2 kB of memory per token of the text.",
    keeps=base.Keeps(200),
    least="size_n",
    memory=(),
    settings=("size_n=8:size_m=16", "size_n=4:size_m=8", "size_n=12:size_m=48"),
    length="size_m",
    copies=base.Copies.ALL,
    llama=base.LlamaFlags("ngram-simple"),
    vllm=base.VllmMethod(
        "ngram",
        {"num_speculative_tokens": "size_m", "prompt_lookup_max": "size_n", "prompt_lookup_min": "size_n"},
    ),
    make=lambda params, _resources: NgramSimple(params),
)
