"""The cost model: times of passes and drafts, and predictions from them (METRICS.md, Leviathan et al. 2023).

Everything is folded from recorded rounds. Times are medians, because one slow pass says nothing; lengths that
were not measured are interpolated linearly.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from statistics import median

from app.engine.types import Round

_KEPT = 101  # newest times that the median is taken over: it follows a machine that becomes busy
_ENOUGH = 5  # from so many times on their median is used as it is
LONGEST = 16
"""The largest draft length that is predicted, or the mean length of an answer if that is larger."""


@dataclass(slots=True)
class NewestTimes:
    """The newest times of one kind, and their cached median: it is read much more often than times are
    added."""

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _median: float | None = None

    def copied(self) -> NewestTimes:
        return NewestTimes(self.seconds.copy(), self._median)

    def add(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._median = None

    @property
    def median(self) -> float:
        """The median in seconds; there must be at least one time."""
        if self._median is None:
            self._median = median(self.seconds)
        return self._median


@dataclass(slots=True)
class PassTimes:
    """Seconds of target passes by the number of tokens in them."""

    times: dict[int, NewestTimes] = field(default_factory=dict)

    def add(self, tokens: int, seconds: float) -> None:
        times = self.times.get(tokens)
        if times is None:
            times = self.times[tokens] = NewestTimes()
        times.add(seconds)

    def measured(self, tokens: int) -> bool:
        """Whether a pass of that size was measured."""
        return tokens in self.times

    def seconds(self, tokens: int) -> float | None:
        """The time of a pass over so many tokens; None if too little was measured.

        Interpolated between measured sizes and extrapolated from the outermost two, but never less than a
        smaller pass takes. A size measured only a few times is taken from the line through the others: one
        lucky pass would make its draft length look best.
        """
        sizes = sorted(
            size for size, times in self.times.items() if size == 1 or len(times.seconds) >= _ENOUGH
        )
        if len(sizes) < 2:
            sizes = sorted(self.times)
        if tokens in sizes:
            return self.times[tokens].median
        if len(sizes) < 2:
            return None
        right = next((at for at, size in enumerate(sizes) if size > tokens), len(sizes) - 1)
        low, high = sizes[max(right, 1) - 1], sizes[max(right, 1)]
        first, last = self.times[low].median, self.times[high].median
        slope = max(0.0, (last - first) / (high - low))
        guess = first + slope * (tokens - low)
        # A line through two noisy points may reach zero: a pass costs at least its share of the larger pass.
        return max(guess, first * min(1.0, tokens / low))


@dataclass(slots=True)
class CostModel:
    """The costs of drafting and verifying, relative to a target pass over one token.

    A fold over the rounds of a speculative answer. With the rounds of a measured baseline added, the
    single-token pass comes from many rounds instead of a few.
    """

    passes: PassTimes = field(default_factory=PassTimes)
    draft_times: NewestTimes = field(default_factory=NewestTimes)  # of a drafted token
    lengths: Counter[int] = field(default_factory=Counter)  # rounds with a draft, by its length
    accepted: int = 0  # tokens, in rounds with a draft

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> CostModel:
        model = cls()
        for round in rounds:
            model.add(round)
        return model

    def copied(self) -> CostModel:
        """A fold that goes on by itself."""
        return CostModel(
            PassTimes({size: times.copied() for size, times in self.passes.times.items()}),
            self.draft_times.copied(),
            self.lengths.copy(),
            self.accepted,
        )

    def add(self, round: Round) -> None:
        """Add a round, of this answer or of its baseline."""
        k = len(round.drafted)
        self.passes.add(k + 1, round.verify_seconds)
        if k:
            self.draft_times.add((round.draft_seconds - round.read_seconds) / k)
            self.lengths[k] += 1
            self.accepted += round.accepted

    @property
    def single_pass(self) -> float | None:
        """Seconds of a target pass over one token; None if none was measured. It is not extrapolated from
        larger passes, which use other kernels."""
        return self.passes.seconds(1) if self.passes.measured(1) else None

    @property
    def c(self) -> float | None:
        """Time of one draft token / time of one single-token target pass."""
        single = self.single_pass
        return self.draft_times.median / single if self.draft_times.seconds and single else None

    def v(self, k: int) -> float | None:
        """Time of a target pass over k+1 tokens / over one token."""
        single, several = self.single_pass, self.passes.seconds(k + 1)
        return several / single if single and several is not None else None

    def predicted(self, alpha: float, k: int) -> float | None:
        """The speed-up that a fixed draft length would give if every token passed with probability alpha."""
        c, v = self.c, self.v(k)
        if v is None or (c is None and k):
            return None
        return expected_tokens(alpha, k) / (v + k * (c or 0.0))

    @property
    def longest(self) -> int:
        """The largest draft length that predictions are made for."""
        return max(LONGEST, ceil(self.mean_length or 0))

    def break_even(self, k: int) -> float | None:
        """The smallest alpha at which drafting k tokens loses nothing.

        None if nothing was measured, or if even a draft that is always right costs more than it saves.
        """
        at_best = self.predicted(1.0, k)
        if at_best is None or at_best < 1 or k == 0:
            return None
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            factor = self.predicted(middle, k)
            if factor is not None and factor >= 1:
                high = middle
            else:
                low = middle
        return high

    @property
    def mean_length(self) -> float | None:
        """The mean draft length."""
        total = self.lengths.total()
        return sum(k * n for k, n in self.lengths.items()) / total if total else None

    @property
    def over_rounds(self) -> float | None:
        """The factor of the recorded rounds with a draft: (1 + mean accepted) / mean(v(k) + k c)."""
        c, total = self.c, self.lengths.total()
        if c is None or not total:
            return None
        cost = sum(rounds * ((self.v(k) or 0.0) + k * c) for k, rounds in self.lengths.items()) / total
        return (1 + self.accepted / total) / cost


def expected_tokens(alpha: float, k: int) -> float:
    """The mean number of tokens that a round emits when it drafts k tokens and each passes with probability
    alpha."""
    return float(sum(alpha**i for i in range(k + 1)))
