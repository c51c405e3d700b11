"""Running acceptance of one strategy: how many tokens of a draft are expected to pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_POSITIONS = 24  # later positions count as the last of these
_GUESS = 0.75  # acceptance before anything was judged
_FADE = 0.025  # share of the running counts lost with every written token
_LONG_FADE = 0.005  # the same for the counts over the longer past
_OLDEST = 20_000  # tokens after which nothing is left of either; many more would overflow the weights
_TRUST_GUESS = 2.0  # weight, in judged tokens, of the guess against the long past,
_TRUST_LONG = 3.0  # of the long past against the running counts,
_TRUST_ALL = 4.0  # and of all positions together against a single one


class Prospect(NamedTuple):
    """The expected result of a round with a draft of at most k tokens."""

    k: int
    drafted: float  # tokens in the draft; fewer than k if it ends early
    tokens: float  # emitted


class Acceptance:
    """Discounted counts of judged drafts, by their position in the draft.

    The chance that a position passes, given that those before it passed, is shrunk towards the chance over
    all positions, that towards the same over a longer past, and that towards a guess. So positions never
    drafted and the first rounds of an answer have estimates too.
    """

    def __init__(self) -> None:
        self._judged = [0.0] * _POSITIONS
        self._passed = [0.0] * _POSITIONS
        self._all_judged = self._all_passed = 0.0
        self._long_judged = self._long_passed = 0.0
        self._asked = self._came = (
            0.0  # rounds in which it was asked, and rounds in which it proposed a draft
        )
        self._wanted = self._given = 0.0  # tokens asked for and given after the first token of a proposal
        # Counts are not aged: instead new ones get ever larger weights.
        self._weight = self._long_weight = 1.0

    def age(self, tokens: int) -> None:
        """Age the counts by `tokens` written tokens."""
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
        """Add a draft: of at most `asked` tokens it had `proposed`, of which `accepted` passed."""
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
        """The share of rounds in which the strategy proposes a draft."""
        return (self._came + self._weight) / (self._asked + self._weight)

    @property
    def seen(self) -> float:
        """The number of tokens that were judged or compared; those long ago count less."""
        return self._all_judged / self._weight

    @property
    def overall(self) -> float:
        """The chance that a drafted token passes whose predecessors passed, over all positions."""
        long = self._long_weight * _TRUST_GUESS
        general = (self._long_passed + long * _GUESS) / (self._long_judged + long)
        trust = self._weight * _TRUST_LONG
        return (self._all_passed + trust * general) / (self._all_judged + trust)

    def expected(self, k: int) -> float:
        """The expected number of tokens emitted by a round with a draft of at most k tokens."""
        *_before, last = self.prospects(k)
        return last.tokens

    def prospects(self, longest: int, optimism: float = 0.0) -> Iterator[Prospect]:
        """Yield the prospects for k = 1, 2, ... `longest`, of rounds with a proposal.

        `optimism` is a lower bound for the chance that a position passes.
        """
        weight, overall = self._weight, self.overall
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
