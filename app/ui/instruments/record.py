"""The answer that the instruments show. No Qt here."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.errors import SettingError
from app.engine.explain.advice import Advice, advise
from app.engine.explain.cost import CostModel
from app.engine.record.stats import Statistics, strategy_names
from app.engine.strategy import StrategySpec
from app.engine.types import Round, Totals, TraceHeader
from app.saved.chats.measurement import Measurement
from app.ui.state.series import RoundSeries, RunClock


class Record:
    """The rounds so far, the same as numbers, and the statistics from round `start` on."""

    def __init__(self) -> None:
        self.header: TraceHeader | None = None
        self.totals: Totals | None = None
        self.rounds: list[Round] = []
        self.series = RoundSeries()
        self.statistics = Statistics()
        self._cost = CostModel()
        self.measurement: Measurement | None = None  # of the answer's request, again and without drafts
        self.clocks: tuple[RunClock, RunClock] | None = None  # of its runs: with the strategy, without

    @property
    def start(self) -> int:
        """The first round that counts."""
        return self.series.start

    @property
    def last(self) -> int:
        """The latest round; `start` - 1 where none counts yet."""
        return len(self.rounds) - 1

    @property
    def live(self) -> bool:
        """Rounds are still to come."""
        return self.header is not None and self.totals is None

    @property
    def drafts(self) -> bool:
        """Whether there is a strategy that drafts."""
        return self.header is None or bool(strategy_names(self.header.strategy))

    @property
    def speed_up(self) -> float | None:
        """The measured factor; None where no baseline was measured."""
        return self.measurement.factor if self.measurement is not None else None

    def measure(self, measurement: Measurement | None) -> None:
        """Take the measured baseline of this answer, or None where there is none."""
        self.measurement = measurement
        self.clocks = None
        if measurement is not None:
            self.clocks = RunClock(measurement.strategy.rounds), RunClock(measurement.baseline.rounds)

    @property
    def cost(self) -> CostModel:
        """What passes and drafts take: as measured with the baseline, else as far as this answer tells."""
        return self.measurement.cost if self.measurement is not None else self._cost

    def advice(self) -> Advice | None:
        """What the numbers mean, where a strategy drafts; None too where it is known no more. Where a
        baseline was measured, the numbers are all of that measurement: the answer came at another speed."""
        if self.header is None:
            return None
        try:
            spec = StrategySpec.parse(self.header.strategy)
        except SettingError:  # of a drafter that was taken away since, or of somebody else's
            return None
        measured = self.measurement
        statistics = measured.statistics if measured is not None else self.statistics
        return advise(spec, statistics, self.cost, self.speed_up)

    def begin(self, header: TraceHeader | None) -> None:
        """Forget the answer; another one begins. None: there is none to show."""
        self.header = header
        self.totals = None
        self.rounds = []
        self.series = RoundSeries()
        self.statistics = Statistics()
        self._cost = CostModel()
        self.measure(None)

    def add(self, rounds: Sequence[Round]) -> None:
        self.rounds += rounds
        self.series.add(rounds)
        for one in rounds:
            self.statistics.add(one)
            self._cost.add(one)

    def finish(self, totals: Totals) -> None:
        self.totals = totals

    def count_from(self, start: int) -> None:
        """Let the statistics begin at round `start`."""
        self.series.start = start
        self.statistics = Statistics.of(self.rounds[start:])
        self._cost = CostModel.of(self.rounds[start:])
