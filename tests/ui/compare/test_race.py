"""The race: recorded lanes against each other at their own speeds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.engine.engine import Engine
from app.engine.record.trace import Trace
from app.ui.compare.race_bar import LaneRace
from tests.answers import answer


@pytest.fixture(scope="module")
def traces(shared_engine: Engine) -> dict[int, Trace]:
    shared_engine.reset()
    settings: dict[str, Any] = {"max_tokens": 24, "ignore_eos": True, "cold": True}
    plain = answer(shared_engine, **settings)
    drafted = answer(shared_engine, strategy="draft-simple:n_max=4", **settings)
    return {0: paced(plain, 0.1), 1: paced(drafted, 0.15), 2: paced(plain, 0.2)}


def first(_lane: int) -> int:
    return 0


def paced(trace: Trace, seconds: float) -> Trace:
    """The trace with rounds of equal length."""
    rounds = [
        msgspec.structs.replace(round, offset=at * seconds, seconds=seconds)
        for at, round in enumerate(trace.rounds)
    ]
    return Trace(trace.header, rounds, trace.totals)


def test_at_the_start_and_at_the_end(traces: dict[int, Trace]) -> None:
    race = LaneRace(traces, first)
    assert all(lane.tokens == 0 and not lane.finished for lane in race.at(0.0).values())
    end = race.at(race.seconds)
    assert all(lane.finished and lane.tokens == 24 for lane in end.values())
    assert race.seconds == pytest.approx(24 * 0.2)
    assert {lane: at.place for lane, at in end.items()} == {
        lane: race.order.index(lane) + 1 for lane in traces
    }


def test_rounds_and_tokens_grow_with_the_clock(traces: dict[int, Trace]) -> None:
    race = LaneRace(traces, first)
    state = race.at(1.05)
    assert (state[0].rounds, state[0].tokens, state[0].place) == (10, 10, None)
    assert state[2].rounds == 5
    assert state[1].tokens == sum(len(round.emitted) for round in traces[1].rounds[: state[1].rounds])


def test_the_gap_is_in_seconds_at_the_lanes_own_token(traces: dict[int, Trace]) -> None:
    state = LaneRace(traces, first).at(1.05)
    assert state[0].ahead is None
    assert state[2].ahead == pytest.approx(5 * 0.1 - 5 * 0.2)


def test_a_lane_without_a_round_stands_still(traces: dict[int, Trace]) -> None:
    race = LaneRace({**traces, 3: Trace(traces[0].header)}, first)
    assert race.at(9.9)[3].tokens == 0
    assert race.order[-1] == 3


def test_each_lane_is_held_against_its_own_baseline(traces: dict[int, Trace]) -> None:
    """Lanes 2 and 3 run on another target, whose none is lane 2; lane 4's none has no trace."""
    own = {0: 0, 1: 0, 2: 2, 3: 2, 4: 9}
    race = LaneRace({**traces, 3: paced(traces[0], 0.05), 4: traces[0]}, own.__getitem__)
    state = race.at(1.001)
    assert state[3].tokens == 20
    assert state[3].ahead == pytest.approx(20 * 0.2 - 20 * 0.05)
    assert state[2].ahead is None
    assert state[4].ahead is None
