"""suffix: drafts what most often followed the last few tokens in this conversation and in earlier answers.

Suffix decoding after Oliaro et al., "SuffixDecoding" (arXiv 2411.04975), with the settings of its
implementation in vLLM. Differences: a place where nothing follows yet, such as the end of the text, is not an
occurrence. `max_depth` limits the match, not match and draft together. Earlier answers are limited in tokens,
not in number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from app.engine.drafters import base
from app.engine.params import param

if TYPE_CHECKING:
    from app.engine.types import TokenIds

ROOT = 0
NONE = -1  # no state, no token
SEAM = -2  # stands between two texts in one index: no continuation crosses it

Place = tuple[int, int]
"""A string that occurs in the index: (state, length of the string in tokens)."""

NOWHERE: Place = (ROOT, 0)


class ShortBy(Enum):
    """The reason why a continuation is shorter than wanted."""

    UNSURE = "the next token's probability was below the limit"
    ENDED = "nothing followed it before"


@dataclass(slots=True)
class Continuation:
    """The most frequent continuation of a string, token by token."""

    ids: list[int]
    score: float  # sum of the tokens' estimated probabilities: the expected number of right tokens
    place: Place  # of the string with its continuation, cut to the last `max_depth` tokens
    stop: ShortBy | None = None


class SuffixIndex:
    """Counts of all substrings of at most `max_depth` + 1 tokens, kept while the text grows.

    A suffix automaton (Blumer et al., 1985): one state for all strings that end at the same places, so at
    most two states per token. The strings at the end of the text are a chain of suffix links; at most
    `max_depth` + 1 are short enough to matter. Appending a token counts along that chain; all else is a
    look-up. A trie of the same depth would need `max_depth` entries per token.
    """

    def __init__(self, max_depth: int) -> None:
        self._depth = max_depth
        self.size = 0  # tokens in the index
        self.end: Place = NOWHERE  # the last `max_depth` tokens of the text
        self._last = ROOT  # the state of the whole text
        # One entry per state; the first is the empty string.
        self.following: list[dict[int, int]] = [{}]  # token -> state
        self._link = [NONE]  # state of the longest suffix that ends at more places
        self._length = [0]  # length of the state's longest string
        self.seen = [0]  # number of places where it ends
        self.followed = [0]  # of these, places where the text continues
        self._best = [NONE]  # the token that followed most often, the latest of several
        self._latest = [NONE]  # text index of the last token at its latest place

    def extend(self, tokens: Iterable[int]) -> None:
        """Append token ids, or SEAM after a finished text."""
        for token in tokens:
            self._append(token)

    def _append(self, token: int) -> None:
        # If this splits the state of `_end`, a run of one token is growing: the longer strings end there too,
        # and `_cut` returns to the shorter ones.
        self._add_state(token)
        following, link, seen, followed = self.following, self._link, self.seen, self.followed
        best, latest = self._best, self._latest
        before = NONE
        state = self.end[0]
        while state != NONE:  # every string, longest first, that the new token follows
            nexts = following[state]
            reached = nexts[token]
            if reached != before:  # strings that differ only further left reach the same state
                seen[reached] += 1
                latest[reached] = self.size
                before = reached
            followed[state] += 1
            favourite = best[state]
            if favourite != token and (favourite == NONE or seen[reached] >= seen[nexts[favourite]]):
                best[state] = token
            state = link[state]
        self.size += 1
        self.end = self._cut(following[self.end[0]][token], self.end[1] + 1)

    def _add_state(self, token: int) -> None:
        """The automaton's step: separate the strings that now end here from those that do not."""
        following, link, length = self.following, self._link, self._length
        new = self._new_state({}, length[self._last] + 1)
        state = self._last
        self._last = new
        while state != NONE and token not in following[state]:
            following[state][token] = new
            state = link[state]
        if state == NONE:
            link[new] = ROOT
            return
        known = following[state][token]
        if length[known] == length[state] + 1:
            link[new] = known
            return
        # Only the shorter strings of `known` end here too: they get a state of their own.
        short = self._new_state(dict(following[known]), length[state] + 1)
        link[short] = link[known]
        for counts in (self.seen, self.followed, self._best, self._latest):
            counts[short] = counts[known]
        link[known] = link[new] = short
        while state != NONE and following[state].get(token) == known:
            following[state][token] = short
            state = link[state]

    def _new_state(self, nexts: dict[int, int], length: int) -> int:
        self.following.append(nexts)
        self._link.append(NONE)
        self._length.append(length)
        self.seen.append(0)
        self.followed.append(0)
        self._best.append(NONE)
        self._latest.append(NONE)
        return len(self.following) - 1

    def _cut(self, state: int, length: int) -> Place:
        """The last `max_depth` tokens of a string that is at most one token longer."""
        if length <= self._depth:
            return state, length
        shorter = self._link[state]
        return (shorter if self._length[shorter] >= self._depth else state), self._depth

    def step(self, place: Place, token: int) -> Place:
        """The longest suffix of (string at `place` + `token`) that occurs, of at most `max_depth` tokens."""
        state, length = place
        while token not in self.following[state]:
            state = self._link[state]
            if state == NONE:
                return NOWHERE
            length = self._length[state]
        return self._cut(self.following[state][token], length + 1)

    def ends(self, place: Place) -> Iterator[Place]:
        """Yield the string and its suffixes that were followed by something, longest first. Of suffixes with
        the same continuations, yield only the longest."""
        state, length = place
        while state != ROOT:
            if self.followed[state]:
                yield state, length
            state = self._link[state]
            length = self._length[state]

    def latest(self, place: Place) -> int:
        """Text index of the last token of the string's latest occurrence."""
        return self._latest[place[0]]

    def follow(self, place: Place, wanted: int, p_min: float) -> Continuation:
        """Draft at most `wanted` tokens, each the most frequent one after all before it.

        A token's share is the fraction of occurrences that it followed; its probability is the product of the
        shares up to it. The first token below `p_min` ends the draft.
        """
        found = Continuation([], 0.0, place)
        state, length = place
        probability = 1.0
        while len(found.ids) < wanted:
            token = self._best[state]
            if token < 0:
                found.stop = ShortBy.ENDED
                break
            reached = self.following[state][token]
            probability *= self.seen[reached] / self.followed[state]
            if probability < p_min:
                found.stop = ShortBy.UNSURE
                break
            found.ids.append(token)
            found.score += probability
            state, length = self._cut(reached, length + 1)
        found.place = state, length
        return found


class EarlierAnswers:
    """At most `max_tokens` tokens of answers, in two indices of half that size each.

    Nothing can be removed from an index. Answers go into the younger index; when it is full it becomes the
    older one, and the former older one is dropped. No index is ever rebuilt.
    """

    def __init__(self, max_depth: int, max_tokens: int) -> None:
        self._depth = max_depth
        self._half = max_tokens // 2
        self._younger = SuffixIndex(max_depth)
        self._older = SuffixIndex(max_depth)

    @property
    def indices(self) -> tuple[SuffixIndex, SuffixIndex]:
        """Both indices, the younger first."""
        return self._younger, self._older

    def add(self, answer: list[int]) -> None:
        """Keep an answer; of an answer longer than half of the limit, only the end."""
        room = self._half - 1  # one place is for the seam
        if room < 1 or not answer:
            return
        answer = answer[-room:]
        if self._younger.size + len(answer) + 1 > self._half:
            self._older, self._younger = self._younger, SuffixIndex(self._depth)
        self._younger.extend(answer)
        self._younger.extend([SEAM])


@dataclass(frozen=True, slots=True)
class SuffixParams:
    """Settings of suffix. vLLM's names are in brackets; defaults are vLLM's.

    n_max: Draft at most this many tokens per round. Usually 8 to 32: max_spec_factor and p_min end most
        drafts earlier.
    p_min: Stop when the estimated chance that the whole draft is accepted falls below this. Usually 0.05 to
        0.3: a higher limit wastes fewer tokens, but drafts fewer.
    max_depth: Match at most this many of the latest tokens. Usually 8 to 64: a longer match distinguishes
        long repetitions, but takes longer to find.
    max_spec_factor: Draft at most this many tokens for each token that matched. Usually 1 to 4: a higher
        factor drafts more tokens after short matches.
    max_spec_offset: Draft this many tokens more than max_spec_factor allows. Usually 0 to 8: more are drafted
        after short matches, but fewer of them are accepted.
    max_cached_tokens: Remember at most this many tokens of earlier answers. 0 remembers none. Usually 10,000
        to 100,000, which take 6 to 60 MB: more finds phrases from older answers.
    """

    n_max: int = param(24, low=1, high=512, unit="tokens")  # [num_speculative_tokens]
    p_min: float = param(0.1, low=0, high=1)  # [suffix_decoding_min_token_prob]
    max_depth: int = param(24, low=1, high=256, unit="tokens")  # [suffix_decoding_max_tree_depth]
    max_spec_factor: float = param(1.0, low=0, high=64)  # [suffix_decoding_max_spec_factor]
    max_spec_offset: float = param(0.0, low=-64, high=512, unit="tokens")  # Arctic Inference's
    max_cached_tokens: int = param(100_000, low=0, high=10_000_000, unit="tokens")


class Suffix(base.Drafter):
    """Drafts from the index and match length that promise most accepted tokens.

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

    def begin(self, context: TokenIds, surroundings: base.RunContext) -> None:
        # Of a continued chat only the new tokens are read; an edited chat is read anew, without what was
        # removed.
        if context[: len(self._known)].tolist() != self._known:
            self._known = []
            self._index = SuffixIndex(self._params.max_depth)
        self._places = [NOWHERE for _ in self.earlier.indices]
        self._match_earlier(context[-self._params.max_depth :].tolist())
        self._learn(context)
        self._answer_start = surroundings.prompt_length

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

    def propose(self, context: TokenIds, k: int) -> base.Proposal:
        self._match_earlier(self._learn(context))  # here: tokens cost nothing until a draft is wanted
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
        proposal = base.Proposal(ids=best.ids, end=end)
        # A draft longer than max_depth need not be a contiguous part of the text.
        if source is self._index and 0 < len(best.ids) <= params.max_depth:
            proposal.match = source.latest(best.place) - len(best.ids) + 1
        return proposal

    def _end(self, found: Continuation, wanted: int, allowed: int, *, own: bool) -> str:
        """Why a draft of at most `wanted` tokens ended; the match `allowed` this many."""
        if found.stop is ShortBy.UNSURE:
            return "p_min"
        if found.stop is ShortBy.ENDED:
            return "end of the text" if own else "end of the earlier answer"
        if wanted == self._params.n_max:
            return "n_max"
        return "as long as the match allows" if wanted == allowed else base.ENOUGH


KIND = base.StrategyKind(
    "suffix",
    SuffixParams,
    "Continues as this conversation and earlier answers most often did; longer matches draft further. "
    "Helps if answers resemble each other: agents, code, repeated tasks. Uses 0.6 kB of memory per token "
    "of the conversation, and of up to max_cached_tokens tokens of earlier answers.",
    keeps=base.Keeps(600, more_tokens="max_cached_tokens"),
    memory=("max_depth", "max_cached_tokens"),
    settings=("n_max=8", "n_max=4", "n_max=16", "n_max=16:max_spec_factor=2"),
    copies=base.Copies.SOME,
    vllm=base.VllmMethod(
        "suffix",
        {
            "num_speculative_tokens": "n_max",
            "suffix_decoding_max_tree_depth": "max_depth",
            "suffix_decoding_max_spec_factor": "max_spec_factor",
            "suffix_decoding_min_token_prob": "p_min",
        },
    ),
    make=lambda params, _resources: Suffix(params),
)
