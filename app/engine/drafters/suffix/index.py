"""An index of all substrings of a growing text: how often each occurred and what most often followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

ROOT = 0
NONE = -1  # no state, no token
SEAM = -2  # stands between two texts in one index: no continuation crosses it

Place = tuple[int, int]
"""A string that occurs in the index: (state, length of the string in tokens)."""

NOWHERE: Place = (ROOT, 0)


class ShortBy(Enum):
    """The reason why a continuation is shorter than wanted."""

    UNSURE = "the next token's probability was below the limit"
    ENDED = "nothing ever followed"


@dataclass(slots=True)
class Continuation:
    """The most frequent continuation of a string, token by token."""

    ids: list[int]
    score: float  # sum of the tokens' estimated probabilities: the expected number of right tokens
    place: Place  # of the string with its continuation, cut to the last `max_depth` tokens
    stop: ShortBy | None = None


class SuffixIndex:
    """Counts of all substrings of at most `max_depth` + 1 tokens, kept while the text grows.

    A suffix automaton (Blumer et al., 1985): one state for all strings that end at the same places, and so at
    most two states per token. The strings that end at the end of the text are a chain of suffix links, of
    which at most `max_depth` + 1 are short enough to matter; appending a token counts along that chain, so
    that everything else is a look-up. A trie of the same depth would need `max_depth` entries per token.
    """

    def __init__(self, max_depth: int) -> None:
        self._depth = max_depth
        self.size = 0  # tokens in the index
        self._end: Place = NOWHERE
        self._last = ROOT  # the state of the whole text
        # One entry per state; the first is the empty string.
        self.following: list[dict[int, int]] = [{}]  # token -> state
        self._link = [NONE]  # state of the longest suffix that ends at more places
        self._length = [0]  # length of the state's longest string
        self.seen = [0]  # number of places where it ends
        self.followed = [0]  # of these, places where the text continues
        self._best = [NONE]  # the token that followed most often, the latest of several
        self._latest = [NONE]  # text index of the last token at its latest place

    @property
    def end(self) -> Place:
        """The last `max_depth` tokens of the text."""
        return self._end

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
        state = self._end[0]
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
        self._end = self._cut(following[self._end[0]][token], self._end[1] + 1)

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
        """Yield the string and its suffixes that were followed by something, longest first; of suffixes with
        the same continuations only the longest."""
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
        """Draft at most `wanted` tokens, each the one that most often followed all before it.

        A token's probability is the product of the shares up to it, where a share is the fraction of followed
        occurrences that this token followed; the first token below `p_min` ends the draft.
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
