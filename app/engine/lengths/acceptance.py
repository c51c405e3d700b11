"""Running acceptance of one strategy: how far its drafts are expected to reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_POSITIONS = 24  # positions behind are taken to be as good as the last of these
_GUESS = 0.75  # acceptance before anything was judged
_FADE = 0.025  # share of the running counts that every written token takes away
_LONG_FADE = 0.005  # the same of the counts that say what the strategy is like in general
_OLDEST = 20_000  # tokens behind which nothing is left of either; many more would overflow the weights
_TRUST_GUESS = 2.0  # judged tokens that the guess is worth against the long past,
_TRUST_LONG = 3.0  # that the long past is worth against the running one,
_TRUST_ALL = 4.0  # and that all positions together are worth against one


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a round with a draft of at most k tokens is expected to bring."""

    k: int
    drafted: float  # tokens in the draft; fewer than k where it ends early
    tokens: float  # emitted


class Acceptance:
    """Discounted counts of judged drafts, by their position in the draft.

    The chance that a position passes, given that those before it passed, is drawn towards the chance over all
    positions, that towards the same over a longer past, and that towards a guess: so a position never drafted
    yet has an estimate too, and so have the first rounds of an answer.
    """

    def __init__(self) -> None:
        self._judged = [0.0] * _POSITIONS
        self._passed = [0.0] * _POSITIONS
        self._all_judged = self._all_passed = 0.0
        self._long_judged = self._long_passed = 0.0
        self._asked = self._came = 0.0  # rounds in which it was asked, and in which it proposed anything
        self._wanted = self._given = 0.0  # tokens behind the first one of a proposal
        # Counts are not aged: new ones weigh more and more instead.
        self._weight = self._long_weight = 1.0

    def age(self, tokens: int) -> None:
        """So many tokens were written."""
        tokens = min(tokens, _OLDEST)
        self._weight *= (1 - _FADE) ** -tokens
        self._long_weight *= (1 - _LONG_FADE) ** -tokens
        if self._weight > 1e9:
            self._rescale()

    def _rescale(self) -> None:
        for counts in (self._judged, self._passed):
            counts[:] = [count / self._weight for count in counts]
        for name in ("_all_judged", "_all_passed", "_asked", "_came", "_wanted", "_given"):
            setattr(self, name, getattr(self, name) / self._weight)
        self._long_judged /= self._long_weight
        self._long_passed /= self._long_weight
        self._weight = self._long_weight = 1.0

    def add(self, asked: int, proposed: int, accepted: int) -> None:
        """A draft of at most `asked` tokens had `proposed`, of which `accepted` passed."""
        weight = self._weight
        self._asked += weight
        if not proposed:
            return
        self._came += weight
        self._wanted += weight * (min(asked, proposed + 1) - 1)
        self._given += weight * (proposed - 1)
        judged = min(accepted + 1, proposed)
        for place in range(min(judged, _POSITIONS)):
            self._judged[place] += weight
            if place < accepted:
                self._passed[place] += weight
        self._all_judged += weight * judged
        self._all_passed += weight * accepted
        self._long_judged += self._long_weight * judged
        self._long_passed += self._long_weight * accepted

    @property
    def hit_rate(self) -> float:
        """Share of the rounds in which it has something to propose."""
        return (self._came + self._weight) / (self._asked + self._weight)

    def expected(self, k: int) -> float:
        """Tokens that a round with a draft of at most k is expected to emit."""
        *_before, last = self.prospects(k)
        return last.tokens

    def prospects(self, longest: int, optimism: float = 0.0) -> Iterator[Prospect]:
        """For k = 1, 2, ... `longest`, of rounds in which it proposes anything.

        With `optimism`, as if no position passed less often than that.
        """
        weight = self._weight
        long = self._long_weight * _TRUST_GUESS
        general = (self._long_passed + long * _GUESS) / (self._long_judged + long)
        trust = weight * _TRUST_LONG
        overall = (self._all_passed + trust * general) / (self._all_judged + trust)
        goes_on = (self._given + weight) / (self._wanted + weight)
        drafted, there, tokens, reach = 0.0, 1.0, 1.0, 1.0
        trust = weight * _TRUST_ALL
        last = _POSITIONS - 1
        for k in range(1, longest + 1):
            place = min(k - 1, last)
            chance = (self._passed[place] + trust * overall) / (self._judged[place] + trust)
            drafted += there
            reach *= max(chance, optimism) * (goes_on if k > 1 else 1.0)
            tokens += reach
            there *= goes_on
            yield Prospect(k, drafted, tokens)
