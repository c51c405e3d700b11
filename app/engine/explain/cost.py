"""The cost model: times of passes and drafts, and predictions from them (Leviathan et al. 2023).

All of it is computed from recorded rounds. Times are medians, so that a single slow pass does not count.
Lengths that were not measured are interpolated linearly.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, sqrt
from statistics import fmean, median

from app.engine.drafters.registry import KINDS
from app.engine.lengths.cost_curve import around
from app.engine.process.messages import DOUBTFUL, PassSeconds
from app.engine.record.stats import Fold
from app.engine.types import Round

_KEPT = 101  # newest times in a median, so that it follows a machine that becomes busy
_ENOUGH = 5  # times; the median of fewer is not used alone
_STEADY, _FEW, _BEYOND, _CALIBRATED = 0.03, 0.15, 0.2, 0.05  # relative standard errors,
_BETWEEN, _FAR, _TILES = 0.11, 0.14, 17  # between sizes, and beyond one of 17: kernels compute in tiles
_DEAREST = 2.0  # the most that a token of a small batch takes, in single-token passes: slow kernels
_SMALL = 8  # tokens of a small batch; one of a larger pass takes no longer than a single-token pass
_SLOWED = 1.5  # times its own time that a pass takes if something else ran
_AT_BEST = 0.25  # of a single-token pass: what a further token of a pass takes, until one was measured
_LONG = 128  # tokens of a text that shows how passes become longer
_STEEPEST = 1e-3  # by which share at most, for each token
_OUT_OF_ORDER = 0.1  # times of passes by this share are measured again
LONGEST = 16
"""The largest predicted draft length, unless an answer's drafts were longer."""


@dataclass(slots=True)
class NewestTimes:
    """The newest times of one kind, with a cached median, because it is read far more often than times are
    added."""

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _median: float | None = None

    def add(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._median = None

    @property
    def median(self) -> float:
        """The median in seconds; there must be at least one time."""
        if self._median is None:
            self._median = median(self.seconds)
        return self._median

    @property
    def error(self) -> float:
        """The relative standard error of the median, at least that of the machine's speed."""
        middle, count = self.median, len(self.seconds)
        if count < _ENOUGH or middle <= 0:
            return _FEW
        spread = 1.48 * median(abs(each - middle) for each in self.seconds)  # of a normal distribution
        return max(_STEADY, 1.25 * spread / (middle * sqrt(count)))


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

    def count(self, tokens: int) -> int:
        """How many passes of that size were measured, the newest ones."""
        return len(self.times[tokens].seconds) if tokens in self.times else 0

    def seconds(self, tokens: int) -> float | None:
        """The time of a pass over this many tokens; None if too little was measured.

        It is on the line through the two sizes that `around` names, and between sizes never less than that of
        the smaller one. A size with few times is interpolated too: one lucky pass would make its draft length
        look best.
        """
        sizes = sorted(size for size in self.times if size == 1 or self.count(size) >= _ENOUGH)
        if len(sizes) < 2:
            sizes = sorted(self.times)
        if tokens in sizes:
            return self.times[tokens].median
        if len(sizes) < 2:
            return None
        low, high = around(sizes, tokens)
        first, last = self.times[low].median, self.times[high].median
        slope = max(0.0, (last - first) / (high - low))
        guess = first + slope * (tokens - low)
        # A line through two noisy points may reach zero: a pass costs at least its share of the larger pass.
        return max(guess, first * min(1.0, tokens / low))

    def error(self, tokens: int) -> float:
        """The standard error of `seconds`, as a share of it."""
        if self.count(tokens) >= _ENOUGH or (tokens == 1 and self.count(1)):
            return self.times[tokens].error
        sizes = [size for size in self.times if self.count(size) >= _ENOUGH]
        between = any(size < tokens for size in sizes) and any(size > tokens for size in sizes)
        if between:
            return _BETWEEN
        return _FAR if sizes and _TILES <= max(sizes) < tokens else _BEYOND


@dataclass(slots=True)
class Deepening:
    """How passes of the same size become longer as the text grows, because attention reads all of it."""

    sums: dict[int, tuple[int, float, float, float, float]] = field(default_factory=dict)
    """Of passes, by their size: how many, their places, seconds, squared places, places times seconds."""
    end: int = 0  # the furthest place
    places: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    """Of the newest single-token passes."""

    def add(self, tokens: int, place: int, seconds: float) -> None:
        self.end = max(self.end, place + tokens)
        if tokens == 1:
            self.places.append(place)
        count, x, t, xx, xt = self.sums.get(tokens, (0, 0.0, 0.0, 0.0, 0.0))
        if not count or seconds < _SLOWED * t / count:
            added = count + 1, x + place, t + seconds, xx + place**2, xt + place * seconds
            self.sums[tokens] = added

    @property
    def slope(self) -> float:
        """The growth for each token of the text, as a share; 0 of a short text, where other things decide."""
        grown = spread = 0.0
        for count, x, t, xx, xt in self.sums.values():
            grown += count * (xt - x * t / count) / t if t else 0.0
            spread += xx - x * x / count
        return min(max(0.0, grown / spread), _STEEPEST) if self.end >= _LONG and spread else 0.0

    @property
    def to_middle(self) -> float:
        """A single-token pass in the middle of the text / the newest ones."""
        return 1 + self.slope * (self.end / 2 - fmean(self.places)) if self.places else 1.0


@dataclass(slots=True)
class CostModel(Fold):
    """The costs of drafting and verifying, relative to a target pass over one token.

    A fold over the rounds of a speculative answer. Add the rounds of a measured baseline, or a calibration of
    this machine: the single-token pass then comes from many passes.
    """

    passes: PassTimes = field(default_factory=PassTimes)
    draft_times: NewestTimes = field(default_factory=NewestTimes)  # of a drafted token
    lengths: Counter[int] = field(default_factory=Counter)  # rounds of the answer, by the length of the draft
    strategies: dict[str, NewestTimes] = field(default_factory=dict)
    """Seconds per token that was computed for a draft, by strategy."""
    rest: NewestTimes = field(default_factory=NewestTimes)  # of a round besides drafting and its pass
    depth: Deepening = field(default_factory=Deepening)
    known: PassTimes = field(default_factory=PassTimes)  # of a calibration
    known_error: float = _CALIBRATED  # the standard error of its times, as a share of them
    known_draft: float = 0.0  # seconds of a pass of the draft model over one token; 0: not known

    @classmethod
    def of(cls, rounds: Iterable[Round], plain: Iterable[Round] = ()) -> CostModel:
        """The costs of an answer; `plain` are rounds of its baseline."""
        model = cls()
        for round in rounds:
            model.add(round)
        for round in plain:
            model.add(round, plain=True)
        return model

    def calibrated(self, passes: PassSeconds) -> CostModel:
        """The model with a calibration."""
        error = min(1.0, max(_CALIBRATED, disorder(passes.target), passes.doubt))
        return replace(self, known=times_of(passes.target), known_draft=passes.draft, known_error=error)

    @property
    def at_best(self) -> CostModel:
        """The model with the shortest likely passes, if the calibration is in doubt or no pass over several
        tokens is known. (Disturbances only make passes longer.)"""
        single, known, error = self.single_pass, self.calibration, self.known_error
        if known is None and single and len(self.passes.times) == 1:
            known, error = PassSeconds({1: single, 17: (1 + 16 * _AT_BEST) * single}), 0.0
        elif known is None or error < DOUBTFUL:
            return self
        shortest = {size: max(known.target[1], taken / (1 + error)) for size, taken in known.target.items()}
        return self.calibrated(PassSeconds(shortest, known.draft, 1.0))

    @property
    def calibration(self) -> PassSeconds | None:
        """The calibration, in the form that an answer takes; None without one."""
        target = {size: times.median for size, times in self.known.times.items()}
        return PassSeconds(target, self.known_draft, self.known_error) if self.known.measured(1) else None

    def add(self, round: Round, plain: bool = False) -> None:
        """Add a round of this answer, or, if `plain`, of its baseline."""
        k = len(round.drafted)
        self.passes.add(k + 1, round.verify_seconds)
        self.depth.add(k + 1, round.position, round.verify_seconds)
        drafting = round.draft_seconds - round.read_seconds
        self.rest.add(max(0.0, round.seconds - round.verify_seconds - (round.draft_seconds if k else 0.0)))
        if plain:
            return
        self.lengths[k] += 1
        if k:
            self.draft_times.add(drafting / k)
        # The token that was too unsure to be drafted was computed too.
        name = round.strategy or next(iter(round.asked or ()), None)
        steps = k + (round.draft_end == "p_min")
        if name is not None and steps:
            self.strategies.setdefault(name, NewestTimes()).add(drafting / steps)

    @property
    def single_pass(self) -> float | None:
        """Seconds of a target pass over one token; None if none was measured. It is never extrapolated from
        larger passes, which use different kernels."""
        return self.seconds(1) if self.passes.measured(1) or self.known.measured(1) else None

    @property
    def plain_pass(self) -> float | None:
        """The same in the middle of the answer: long ones begin with short passes, and a baseline's newest
        are its longest."""
        single = self.single_pass
        return single * self.depth.to_middle if single is not None else None

    def seconds(self, tokens: int) -> float | None:
        """Seconds of a target pass in this answer. If it has too few: those of the calibration, scaled to the
        machine's speed during the answer."""
        if not self.known.times or self.passes.count(tokens) >= _ENOUGH:
            return self.passes.seconds(tokens)
        seconds, own = self.known.seconds(tokens), self.passes.times.get(tokens)
        if seconds is None:
            return None
        seconds *= self._pace
        # Far beyond what was timed its own few passes say more, and a disturbance only makes them longer.
        return min(seconds, own.median) if own is not None and tokens > max(self.known.times) else seconds

    @property
    def _pace(self) -> float:
        """The time of this answer's passes / the calibration's."""
        both = [
            times.median / known
            for size, times in self.passes.times.items()
            if self.passes.count(size) >= _ENOUGH and (known := self.known.seconds(size))
        ]
        return median(both) if both else 1.0

    def error(self, tokens: int) -> float:
        """The standard error of a pass, as a share of its time."""
        if not self.known.times or self.passes.count(tokens) >= _ENOUGH:
            return self.passes.error(tokens)
        return max(self.known_error, self.known.error(tokens))

    def step_seconds(self, strategy: str) -> float:
        """Seconds per token of a strategy's drafts; 0 if not known."""
        if strategy in self.strategies:
            return self.strategies[strategy].median
        return self.known_draft * self._pace if KINDS[strategy].by_model else 0.0

    @property
    def c(self) -> float | None:
        """Time of one draft token / time of one single-token target pass."""
        single = self.single_pass
        return self.draft_times.median / single if self.draft_times.seconds and single else None

    def v(self, k: int) -> float | None:
        """Time of a target pass over k+1 tokens / over one token."""
        single, several = self.single_pass, self.seconds(k + 1)
        return several / single if single and several is not None else None

    def predicted(self, alpha: float, k: int) -> float | None:
        """The speed-up if all rounds draft k tokens and each passes with probability alpha."""
        c, v = self.c, self.v(k)
        if v is None or (c is None and k):
            return None
        return expected_tokens(alpha, k) / (v + k * (c or 0.0))

    def of_answer(self, alpha: float, k: int) -> float | None:
        """The speed-up of the whole answer if its drafts had k tokens, with the recorded share of rounds that
        draft, and with what a round takes besides drafting and its pass."""
        c, v, share, single = self.c, self.v(k), self.drafting_share, self.single_pass
        if v is None or not single or (c is None and k):
            return None
        gained = 1 + share * (expected_tokens(alpha, k) - 1)
        rest = self.rest.median / single if self.rest.seconds else 0.0
        return gained * (1 + rest) / (1 - share + share * (v + k * (c or 0.0)) + rest)

    @property
    def drafting_share(self) -> float:
        """The share of rounds that had a draft."""
        total = self.lengths.total()
        return 1 - self.lengths[0] / total if total else 0.0

    @property
    def longest(self) -> int:
        """The largest draft length for predictions."""
        return max(LONGEST, ceil(self.mean_length or 0))

    def break_even(self, k: int) -> float | None:
        """The smallest alpha at which drafting k tokens loses nothing.

        None if nothing was measured, or if even a perfect draft costs more than it saves.
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

    def is_disturbed(self, k: int) -> bool:
        """Whether passes over k + 1 tokens took longer than the target alone can take: something else was
        running."""
        v, single, several = self.v(k), self.known.seconds(1), self.known.seconds(k + 1)
        if v is None or not (self.passes.measured(k + 1) or single):
            return False
        # A calibration tells which targets are slow in small batches, unless it was disturbed itself.
        own = min(several / single, _dearest(k + 1)) if single and several else 0.0
        return v >= _SLOWED * max(k + 1, own)

    @property
    def surely_priced(self) -> bool:
        """Whether enough single-token passes were measured to compare others with."""
        return self.known.measured(1) or self.passes.count(1) >= _ENOUGH

    @property
    def mean_length(self) -> float | None:
        """The mean length of the drafts."""
        total = self.lengths.total() - self.lengths[0]
        return sum(k * n for k, n in self.lengths.items()) / total if total else None

    def factor(self, tokens: int, lengths: Counter[int]) -> float | None:
        """Tokens / the time of rounds with drafts of these lengths, in target passes over one token."""
        taken = 0.0
        for k, rounds in lengths.items():
            v = self.v(k)
            if v is None or (k and self.c is None):
                return None
            taken += rounds * (v + k * (self.c or 0.0))
        return tokens / taken if taken else None


def times_of(seconds: Mapping[int, float]) -> PassTimes:
    """Passes whose median times are known, by their tokens."""
    return PassTimes({size: NewestTimes(deque([taken] * _ENOUGH, _KEPT)) for size, taken in seconds.items()})


def _dearest(tokens: int) -> float:
    """The longest that an undisturbed pass takes, in single-token passes."""
    return tokens * _DEAREST if tokens <= _SMALL else tokens


def disorder(target: Mapping[int, float]) -> float:
    """How much the machine was disturbed. It is the largest share by which a pass took longer than one over
    at least 1.8 times as many tokens, or than any target takes. One over a few tokens more may be shorter."""
    later = [taken / target[size] for size in target for few, taken in target.items() if size >= 1.8 * few]
    single = target.get(1, 0.0)
    dearer = [seconds / (_dearest(size) * single) for size, seconds in target.items() if single]
    return max(1.0, *later, *dearer) - 1


def is_plausible(passes: PassSeconds) -> bool:
    """Whether times need no second measurement: two tokens cost at most twice one, and larger passes take
    longer. Slow kernels for small batches count as implausible too."""
    return not passes.doubt and disorder(passes.target) <= _OUT_OF_ORDER


def checked(first: PassSeconds, second: PassSeconds) -> PassSeconds:
    """Two measurements as one: the shorter of each two times, because disturbances only make passes longer,
    and how far the times differ in single-token passes."""
    both = [(seconds, second.target[size]) for size, seconds in first.target.items()]
    pace = first.target[1] / second.target[1]
    apart = max(max(one / other / pace, other / one * pace) for one, other in both) - 1
    shorter = dict(zip(first.target, map(min, both), strict=True))
    return PassSeconds(shorter, min(first.draft, second.draft), apart)


def expected_tokens(alpha: float, k: int) -> float:
    """The mean number of tokens emitted by a round with k drafted tokens, each of which passes with
    probability alpha."""
    return float(sum(alpha**i for i in range(k + 1)))
