"""Sums over answers: ratios are those of all rounds together; a reset begins with the next round."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.engine.record.llama_cpp_lines import llama_cpp_lines
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.ui.instruments.sums_panel import SinceReset, Sums
from app.ui.state.answer import AnswerModel
from tests.ui.traces import make_header, simulate

FIRST, SECOND = (simulate("one two three four five " * 20, seed=seed) for seed in (1, 2))


def wall(trace: Trace) -> float:
    """The whole wall time of an answer, which is longer than its rounds."""
    assert trace.totals is not None and trace.totals.seconds > Statistics.of(trace.rounds).seconds
    return trace.totals.seconds


def test_sums_over_answers_are_those_of_all_their_rounds() -> None:
    sums = Sums.over([AnswerModel(FIRST), AnswerModel(None), AnswerModel(SECOND)])
    together = Statistics.of([*FIRST.rounds, *SECOND.rounds])
    assert len(sums.headers) == 2
    for name in (
        "rounds",
        "emitted",
        "accepted",
        "drafted",
        "alpha",
        "tau",
        "tokens_per_pass",
        "draft_share",
    ):
        assert getattr(sums.statistics, name) == getattr(together, name), name
    assert sums.statistics.seconds == pytest.approx(wall(FIRST) + wall(SECOND))


def test_a_reset_of_the_plots_leaves_the_sums_whole() -> None:
    answer = AnswerModel(FIRST)
    answer.count_from(5)
    whole = Sums.over([answer]).statistics
    assert whole.rounds == len(FIRST.rounds) and whole.seconds == wall(FIRST)


def test_lines_count_every_answer_as_a_generation() -> None:
    headers = make_header("draft-simple:n_max=4"), make_header("suffix+draft-simple:n_max=6")
    answers = [AnswerModel(Trace(header, FIRST.rounds)) for header in headers]
    (alone, *_), (_, _, draft, suffix) = Sums.over(answers[:1]).lines(), Sums.over(answers).lines()
    assert alone == llama_cpp_lines(Statistics.of(FIRST.rounds), ["draft-simple"])[0]
    assert draft.startswith("statistics     draft-simple: #calls(b,g,a) =    2")
    assert suffix.startswith("statistics           suffix: #calls(b,g,a) =    2")


def test_answers_that_began_with_a_filled_cache_are_counted_as_warm() -> None:
    warm = Trace(replace(FIRST.header, cached_tokens=3, cold=False), FIRST.rounds)
    assert Sums.over([AnswerModel(FIRST), AnswerModel(warm)]).warm == 1


def grown(since: SinceReset, trace: Trace, end: int, begun: int = 0) -> AnswerModel:
    answer = AnswerModel(live=True)
    since.follow(answer)
    answer.begin(trace.header, trace.rounds[:begun])
    answer.add(trace.rounds[begun:end])
    return answer


def test_since_reset_counts_answers_as_they_come() -> None:
    since = SinceReset()
    assert since.sums.statistics.rounds == 0
    first = grown(since, FIRST, 10)
    first.add(FIRST.rounds[10:12])
    assert since.sums.statistics == Statistics.pooled([Statistics.of(FIRST.rounds[:12])])
    grown(since, SECOND, 7)
    assert len(since.sums.headers) == 2
    pooled = Statistics.pooled([Statistics.of(FIRST.rounds[:12]), Statistics.of(SECOND.rounds[:7])])
    assert since.sums.statistics == pooled


def test_a_reset_begins_with_the_next_round() -> None:
    since = SinceReset()
    grown(since, FIRST, 10)
    answer = grown(since, SECOND, 5)
    since.reset()
    assert since.sums.statistics.rounds == 0 and not since.sums.headers
    answer.add(SECOND.rounds[5:9])
    assert since.sums.statistics == Statistics.pooled([Statistics.of(SECOND.rounds[5:9])])


def test_since_reset_an_ended_answer_counts_with_its_whole_time() -> None:
    since = SinceReset()
    told: list[float] = []
    since.changed.connect(lambda: told.append(since.sums.statistics.seconds))
    grown(since, FIRST, len(FIRST.rounds)).end(FIRST.totals)
    assert told[-1] == since.sums.statistics.seconds == wall(FIRST)


def test_after_a_reset_an_answer_counts_with_the_time_of_its_later_rounds() -> None:
    since = SinceReset()
    answer = grown(since, FIRST, 10)
    since.reset()
    answer.add(FIRST.rounds[10:])
    answer.end(FIRST.totals)
    assert since.sums.statistics.seconds == Statistics.of(FIRST.rounds[10:]).seconds


def test_the_known_rounds_of_a_continued_answer_are_not_new() -> None:
    since = SinceReset()
    grown(since, FIRST, 10, begun=6)
    assert since.sums.statistics.rounds == 4
