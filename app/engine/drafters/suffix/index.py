"""A growing text, indexed by all its substrings: how often each stood there and what most often followed."""

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
    """Why a continuation is shorter than was wanted."""

    UNSURE = "the next token's probability was below the limit"
    ENDED = "nothing ever followed"


@dataclass(slots=True)
class Continuation:
    """What most often followed a string, token by token."""

    ids: list[int]
    score: float  # sum of the tokens' estimated probabilities: how many are expected to be right
    place: Place  # the string with its continuation, cut to its last `max_depth` tokens
    stop: ShortBy | None = None


class SuffixIndex:
    """Counts of all substrings of at most `max_depth` + 1 tokens, kept while the text grows.

    A suffix automaton (Blumer et al., 1985): one state for all strings that end at the same places, and so
    at most two states a token. The strings that end where the text ends now are a chain of suffix links, at
    most `max_depth` + 1 of them short enough to matter; appending a token counts along that chain, so that
    everything else is a look-up. A trie of the same depth would hold the same numbers in `max_depth` entries
    a token.
    """

    def __init__(self, max_depth: int) -> None:
        self._depth = max_depth
        self.size = 0  # tokens in the index
        self._end: Place = NOWHERE
        self._last = ROOT  # the state of the whole text
        # One entry a state; the first is the empty string.
        self.following: list[dict[int, int]] = [{}]  # token -> state
        self._link = [NONE]  # the state of its longest suffix that ends at more places
        self._length = [0]  # of its longest string
        self.seen = [0]  # places where it ends
        self.followed = [0]  # of these, places where the text goes on
        self._best = [NONE]  # the token that followed most often, of several the latest
        self._latest = [NONE]  # text index of the last token at its latest place

    @property
    def end(self) -> Place:
        """The last `max_depth` tokens of the text."""
        return self._end

    def extend(self, tokens: Iterable[int]) -> None:
        """Append token ids, or SEAM behind a text that is over."""
        for token in tokens:
            self._append(token)

    def _append(self, token: int) -> None:
        # Where this splits the state of `_end`, a run of one token is growing: the longer strings end there
        # as well, and `_cut` comes back to the shorter ones.
        self._add_state(token)
        following, link, seen, followed = self.following, self._link, self.seen, self.followed
        best, latest = self._best, self._latest
        before = NONE
        state = self._end[0]
        while state != NONE:  # every string, longest first, that the new token follows
            nexts = following[state]
            reached = nexts[token]
            if reached != before:  # strings that part only further left arrive at one state
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
        """The automaton's step: strings that now end here are told apart from those that do not."""
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
        # Only the shorter strings of `known` end here as well: they get a state of their own.
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
        """The last `max_depth` tokens of a string that is at most one longer."""
        if length <= self._depth:
            return state, length
        shorter = self._link[state]
        return (shorter if self._length[shorter] >= self._depth else state), self._depth

    def step(self, place: Place, token: int) -> Place:
        """The longest end of (string at `place` + `token`) that occurs, of at most `max_depth` tokens."""
        state, length = place
        while token not in self.following[state]:
            state = self._link[state]
            if state == NONE:
                return NOWHERE
            length = self._length[state]
        return self._cut(self.following[state][token], length + 1)

    def ends(self, place: Place) -> Iterator[Place]:
        """The string and its ends, longest first, of those that continue alike only the longest; only where
        something followed."""
        state, length = place
        while state != ROOT:
            if self.followed[state]:
                yield state, length
            state = self._link[state]
            length = self._length[state]

    def latest(self, place: Place) -> int:
        """Text index of the last token of the string where it occurs last."""
        return self._latest[place[0]]

    def follow(self, place: Place, wanted: int, p_min: float) -> Continuation:
        """At most `wanted` tokens, each the one that most often followed all before it.

        A token's probability is the product of the shares up to it, a share being how often the token
        followed among the times that anything did; the first one below `p_min` ends the draft.
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
