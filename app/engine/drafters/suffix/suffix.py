"""suffix: drafts what most often followed the last few tokens in this conversation and in earlier answers.

Suffix decoding after Oliaro et al., "SuffixDecoding" (arXiv 2411.04975), with the settings of its
implementation in vLLM. Differences: a place where nothing follows yet, such as the end of the text, is not
counted as an occurrence; `max_depth` limits the match, not match and draft together; earlier answers are
limited in tokens, not in number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.engine.drafters.base import ENOUGH, Drafter, Proposal, RunContext
from app.engine.drafters.suffix.earlier_answers import EarlierAnswers
from app.engine.drafters.suffix.index import NOWHERE, Continuation, Place, ShortBy, SuffixIndex
from app.engine.params import param

if TYPE_CHECKING:
    from app.engine.types import TokenIds


@dataclass(frozen=True, slots=True)
class SuffixParams:
    """Settings of suffix. vLLM's names are in brackets; defaults are vLLM's."""

    n_max: int = param(  # [num_speculative_tokens]
        24,
        "Draft at most this many tokens per round. Usually 8 to 32: max_spec_factor and p_min end most "
        "drafts before.",
        low=1,
        high=512,
        unit="tokens",
    )
    p_min: float = param(  # [suffix_decoding_min_token_prob]
        0.1,
        "Stop where the estimated chance that the whole draft is accepted falls below this. Usually 0.05 "
        "to 0.3: a higher limit wastes fewer tokens, and drafts fewer.",
        low=0,
        high=1,
    )
    max_depth: int = param(  # [suffix_decoding_max_tree_depth]
        24,
        "Match at most this many of the latest tokens. Usually 8 to 64: a longer match tells long "
        "repetitions apart, and takes longer to find.",
        low=1,
        high=256,
        unit="tokens",
    )
    max_spec_factor: float = param(  # [suffix_decoding_max_spec_factor]
        1.0,
        "Draft at most this many tokens for each token that matched. Usually 1 to 4: a higher factor "
        "drafts more tokens after short matches.",
        low=0,
        high=64,
    )
    max_spec_offset: float = param(  # Arctic Inference's max_spec_offset
        0.0,
        "Draft this many tokens more than max_spec_factor allows. Usually 0 to 8: more are drafted after "
        "short matches, and fewer of them are accepted.",
        low=-64,
        high=512,
        unit="tokens",
    )
    max_cached_tokens: int = param(
        100_000,
        "Remember at most this many tokens of earlier answers. 0 remembers none. Usually 10,000 to 100,000, "
        "which take 6 to 60 MB: more finds phrases of older answers.",
        low=0,
        high=10_000_000,
        unit="tokens",
    )


class Suffix(Drafter):
    """Drafts from the index and the match length whose draft promises most accepted tokens.

    The promise (the paper's score) is the sum of the estimated probabilities. A longer match allows a longer
    draft, so the longest match usually wins; a shorter match with more occurrences may.
    """

    def __init__(self, params: SuffixParams) -> None:
        self._params = params
        self.reset()

    def reset(self) -> None:
        self._known: list[int] = []  # the text in the index of this conversation
        self._index = SuffixIndex(self._params.max_depth)
        self.earlier = EarlierAnswers(self._params.max_depth, self._params.max_cached_tokens)
        self._places: list[Place] = []  # the end of the context in each index of earlier answers
        self._answer_start: int | None = None  # None: no answer is being written

    def adjust(self, params: SuffixParams) -> None:
        self._params = params

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        # Of a continued chat only the new tokens are read; an edited chat is read anew, without what was
        # removed.
        if context[: len(self._known)].tolist() != self._known:
            self._known = []
            self._index = SuffixIndex(self._params.max_depth)
        self._places = [NOWHERE for _ in self.earlier.indices]
        self._match_earlier(context[-self._params.max_depth :].tolist())
        self._learn(context)
        self._answer_start = surroundings.prompt_length

    def observe(self, context: TokenIds, proposal: Proposal, accepted: int) -> None:
        self._match_earlier(self._learn(context))

    def finish(self, context: TokenIds) -> None:
        if self._answer_start is not None:
            self.earlier.add(context[self._answer_start :].tolist())
            self._answer_start = None

    def _learn(self, context: TokenIds) -> list[int]:
        """Index the new tokens of the context, and return them."""
        new: list[int] = context[len(self._known) :].tolist()
        self._known += new
        self._index.extend(new)
        return new

    def _match_earlier(self, new: list[int]) -> None:
        for at, index in enumerate(self.earlier.indices):
            for token in new:
                self._places[at] = index.step(self._places[at], token)

    def propose(self, context: TokenIds, k: int) -> Proposal:
        params = self._params
        best = Continuation([], -1.0, NOWHERE)
        source, end = self._index, "no match"
        places = [(self._index, self._index.end), *zip(self.earlier.indices, self._places, strict=True)]
        for index, longest in places:
            for place in index.ends(longest):
                allowed = max(0, int(place[1] * params.max_spec_factor + params.max_spec_offset + 1e-6))
                wanted = min(allowed, params.n_max, k)
                if wanted <= best.score:
                    break  # a shorter match allows no more tokens, each scoring at most 1
                found = index.follow(place, wanted, params.p_min)
                if found.score > best.score:
                    best, source = found, index
                    end = self._end(found, wanted, allowed, own=index is self._index)
        proposal = Proposal(ids=best.ids, end=end)
        # A draft longer than max_depth need not be a contiguous part of the text.
        if source is self._index and 0 < len(best.ids) <= params.max_depth:
            proposal.match = source.latest(best.place) - len(best.ids) + 1
        return proposal

    def _end(self, found: Continuation, wanted: int, allowed: int, *, own: bool) -> str:
        """The reason why a draft of at most `wanted` tokens, of the `allowed` by the match, ended."""
        if found.stop is ShortBy.UNSURE:
            return "p_min"
        if found.stop is ShortBy.ENDED:
            return "end of the text" if own else "end of the earlier answer"
        if wanted == self._params.n_max:
            return "n_max"
        return "length of the match" if wanted == allowed else ENOUGH
