"""Tune for me: what is tried, what wins, and when nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.engine.errors import SettingError
from app.engine.host import ThreadHome
from app.engine.messages import AnyCommand, Event, Finished, Generate, RoundFinished
from app.engine.strategy import StrategySpec
from app.engine.types import Sampling
from app.lab.candidates import candidates
from app.lab.control import Control
from app.lab.events import RunDone
from app.lab.experiment import Experiment, Prompt
from app.lab.halving import FINALISTS, kept_of, rungs_left, survivors, time_share
from app.lab.tune import RungBegun, RungDone, Tuned, TuneEnded, Tuner
from tests.lab.experiments import pair_of

PROMPTS = tuple(Prompt(f"abcabc {n}", "ab"[n % 2]) for n in range(4))
PACE = {"none": 0.010, "draft-simple:n_max=2": 0.004, "draft-simple:n_max=4": 0.006}
STRATEGIES = [f"draft-simple:n_max={n}" for n in (1, 2, 4, 5, 6, 7, 8, 9)]


class Clock:
    """Stands still, but for what the runs say they took."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Paced:
    """An engine whose tokens take the time that their strategy decides, on the clock and on the record."""

    def __init__(self, clock: Clock, pace: dict[str, float]) -> None:
        self.inner, self.clock, self.pace = ThreadHome(), clock, pace
        self.strategy = ""
        self.offset = 0.0

    def send(self, command: AnyCommand) -> None:
        if isinstance(command, Generate):
            self.strategy, self.offset = command.request.strategy, 0.0
        self.inner.send(command)

    def receive(self, timeout: float) -> Event | None:
        event = self.inner.receive(timeout)
        if isinstance(event, RoundFinished):
            took = len(event.round.emitted) * self.pace.get(self.strategy, 0.012)
            one = msgspec.structs.replace(event.round, offset=self.offset, seconds=took, verify_seconds=took)
            self.offset += took
            self.clock.now += took
            return msgspec.structs.replace(event, round=one)
        if isinstance(event, Finished):
            return msgspec.structs.replace(
                event, totals=msgspec.structs.replace(event.totals, seconds=self.offset)
            )
        return event

    def close(self) -> None:
        self.inner.close()


def asked(pair_files: tuple[Path, Path]) -> Experiment:
    return Experiment(
        pair_of(pair_files), (), PROMPTS, Sampling(seed=2), max_tokens=24, chat=False, ignore_eos=True
    )


def tuner_of(
    pair_files: tuple[Path, Path], pace: dict[str, float], budget: float, control: Control | None = None
) -> Tuner:
    clock = Clock()
    return Tuner(
        asked(pair_files),
        lambda: Paced(clock, pace),
        budget,
        strategies=STRATEGIES,
        clock=clock,
        control=control,
    )


def tuned(pair_files: tuple[Path, Path], pace: dict[str, float], budget: float) -> tuple[Tuned, list[object]]:
    tuner = tuner_of(pair_files, pace, budget)
    events: list[object] = list(tuner.run())
    assert tuner.result is not None
    assert events[-1] == TuneEnded(tuner.result)
    return tuner.result, events


def test_the_fastest_wins_after_all_were_tried(pair_files: tuple[Path, Path]) -> None:
    result, events = tuned(pair_files, PACE, budget=30.0)
    assert result.winner == result.best == "draft-simple:n_max=2"
    assert result.speedup is not None and result.speedup.factor == pytest.approx(2.5)
    assert "draft-simple:n_max=2 is 2.50×" in result.reason
    assert "Next came draft-simple:n_max=4, 1.67×" in result.reason
    assert result.complete and result.tried == 8
    assert [len(rung.scores) for rung in result.rungs] == [8, 4, 3]
    assert [sum(one.kept for one in rung.scores) for rung in result.rungs] == [4, 3, 1]
    begun = [event for event in events if isinstance(event, RungBegun)]
    assert sum(isinstance(event, RungDone) for event in events) == len(begun) == 3
    # The budget was kept, and used.
    assert 0.8 * 30 < result.seconds < 1.2 * 30
    # Every candidate of a rung saw the same prompts.
    for rung in result.rungs:
        assert len({one.prompts for one in rung.scores}) == 1


def test_none_where_nothing_is_faster_and_it_says_why(pair_files: tuple[Path, Path]) -> None:
    result, _ = tuned(pair_files, {"none": 0.004}, budget=15.0)
    assert result.winner == "none"
    assert result.speedup is not None and result.speedup.factor == pytest.approx(1 / 3)
    assert result.reason.startswith("none: speculation does not pay here, because even the best")
    assert "0.33×" in result.reason
    # The cause comes from the measured costs, in the words of the advice.
    assert len(result.reason) > len("none: speculation does not pay here, because even the best") + 60


def test_where_a_lookup_is_nearest_the_models_costs_are_told_too(pair_files: tuple[Path, Path]) -> None:
    clock = Clock()
    pace = {"none": 0.004, "suffix:n_max=2": 0.0041}
    strategies = ["draft-simple:n_max=4", "suffix:n_max=2"]
    tuner = Tuner(asked(pair_files), lambda: Paced(clock, pace), 10.0, strategies=strategies, clock=clock)
    list(tuner.run())
    assert tuner.result is not None and tuner.result.best == "suffix:n_max=2"
    assert "The best with the draft model, draft-simple:n_max=4, measured 0.33×" in tuner.result.reason


def test_time_too_short_for_all_tries_the_first_ones(pair_files: tuple[Path, Path]) -> None:
    result, _ = tuned(pair_files, PACE, budget=3.0)
    assert 0 < len(result.rungs[0].scores) < 8
    assert {one.strategy for one in result.rungs[0].scores} == set(STRATEGIES[: result.tried])
    assert f"Only {result.tried} of 8 candidates could be tried" in result.reason


def test_cancel_ends_it_with_what_was_found(pair_files: tuple[Path, Path]) -> None:
    control = Control()
    tuner = tuner_of(pair_files, PACE, 30.0, control)
    done = 0
    for event in tuner.run():
        done += isinstance(event, RunDone)
        if done == 20:
            control.cancel()
    assert tuner.result is not None
    assert not tuner.result.complete
    assert "not over" in tuner.result.reason


def test_strategies_that_cannot_be_used_are_refused(pair_files: tuple[Path, Path]) -> None:
    with pytest.raises(SettingError):
        Tuner(asked(pair_files), ThreadHome, 10.0, strategies=["nosuch"])


def test_candidates_can_all_be_read_and_are_all_different() -> None:
    every = candidates(has_draft=True)
    assert len({str(StrategySpec.parse(one)) for one in every}) == len(every) > 20
    without = candidates(has_draft=False)
    assert without and not any(StrategySpec.parse(one).needs_draft for one in without)
    families = {one.split(":")[0] for one in every[:5]}
    assert len(families) >= 4  # where time is short, each family had its turn


def halved(n: int) -> Iterator[int]:
    while n > FINALISTS:
        yield n
        n = kept_of(n, n)
    yield n


def test_halving_ends_with_the_finalists_and_spends_all_the_time() -> None:
    for n in range(1, 70):
        sizes = list(halved(n))
        assert len(sizes) == rungs_left(n)
        assert sizes[-1] <= FINALISTS
        left = 100.0
        shares = []
        for size in sizes:
            shares.append(time_share(size, left))
            left -= shares[-1]
        assert left == pytest.approx(0)
        assert shares[-1] == max(shares)


def test_survivors_are_the_best_first() -> None:
    assert survivors({"a": 1.0, "b": 1.4, "c": 1.2}, 2) == ("b", "c")
