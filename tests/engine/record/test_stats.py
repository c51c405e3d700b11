"""Statistics against METRICS.md's definitions, and llama.cpp's lines against its own output."""

from __future__ import annotations

from operator import truediv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.engine.engine import Engine
from app.engine.fates import JUDGED, Origin, Verdict
from app.engine.record.llama_cpp_lines import llama_cpp_lines
from app.engine.record.stats import Statistics, strategy_names
from app.engine.record.trace import Trace
from app.engine.types import DraftedToken, EmittedToken, Round
from tests.answers import answer
from tests.ui.traces import make_header

MS = 0.001


def make_round(
    index: int,
    length: int,
    accepted: int,
    strategy: str | None = "draft-simple",
    *,
    cut: bool = False,
    draft_ms: float = 1.0,
    draft_end: str = "",
    offset: float | None = None,
) -> Round:
    """A round whose draft has `length` tokens, of which `accepted` pass; `cut`: a stop ended it."""
    verdicts = [Verdict.ACCEPTED] * accepted
    if accepted < length:
        verdicts.append(Verdict.IGNORED if cut else Verdict.REJECTED)
        verdicts += [Verdict.IGNORED] * (length - accepted - 1)
    origins = [Origin.ACCEPTED] * accepted
    if length == 0:
        origins.append(Origin.PLAIN)
    elif not cut:
        origins.append(Origin.RESAMPLED if accepted < length else Origin.BONUS)
    return Round(
        index=index,
        position=0,
        offset=0.01 * index if offset is None else offset,
        seconds=0.01,
        draft_seconds=draft_ms * MS,
        verify_seconds=0.006,
        sample_seconds=0.0005,
        native_seconds=0.007,
        drafted=tuple(DraftedToken(7, b"x", verdict, 1.0) for verdict in verdicts),
        emitted=tuple(EmittedToken(7, b"x", origin, 0.5) for origin in origins),
        strategy=strategy if length else None,
        draft_end=draft_end,
    )


@st.composite
def answers(draw: st.DrawFn) -> list[Round]:
    """Answers in which two strategies draft, and sometimes neither."""
    rounds = []
    for index in range(draw(st.integers(0, 30))):
        length = draw(st.integers(0, 6))
        accepted = draw(st.integers(0, length))
        name = draw(st.sampled_from(["ngram-mod", "draft-simple"]))
        end = draw(st.sampled_from(["", "no match"]))
        milliseconds = draw(st.floats(0, 5))
        rounds.append(make_round(index, length, accepted, name, draft_end=end, draft_ms=milliseconds))
    return rounds


@given(answers(), st.integers(0, 30))
def test_adding_round_by_round_is_the_fold_over_all(rounds: list[Round], split: int) -> None:
    live = Statistics.of(rounds[:split])
    for round in rounds[split:]:
        live.add(round)
    assert live == Statistics.of(rounds)


@given(answers(), st.integers(0, 30))
def test_answers_pooled_have_the_ratios_of_all_their_rounds(rounds: list[Round], split: int) -> None:
    whole = Statistics.of(rounds)
    pooled = Statistics.pooled([Statistics.of(rounds[:split]), Statistics.of(rounds[split:])])
    for name in ("acceptance_rate", "alpha", "tau", "draft_share", "acc_per_pos", "longest_draft", "ends"):
        assert getattr(pooled, name) == getattr(whole, name)
    assert pooled.native_seconds == pytest.approx(whole.native_seconds)
    assert pooled.seconds == pytest.approx(0.01 * len(rounds)), "what lies between two answers is no time"
    assert {name: drafts.accepted_per_round for name, drafts in pooled.strategies.items()} == {
        name: drafts.accepted_per_round for name, drafts in whole.strategies.items()
    }
    assert Statistics.pooled([]) == Statistics()


@given(answers())
def test_sums_and_invariants(rounds: list[Round]) -> None:
    statistics = Statistics.of(rounds)
    drafted = [round for round in rounds if round.drafted]
    assert statistics.rounds == len(rounds)
    assert statistics.drafted_rounds == len(drafted)
    assert statistics.drafted == sum(len(round.drafted) for round in rounds)
    assert statistics.accepted == sum(round.accepted for round in rounds)
    assert statistics.rejected == sum(round.rejected for round in rounds)
    assert statistics.ignored == sum(round.ignored for round in rounds)
    assert statistics.drafted == statistics.accepted + statistics.rejected + statistics.ignored
    assert statistics.emitted == statistics.accepted + statistics.rounds
    assert statistics.emitted == sum(statistics.origins.values())
    assert statistics.origins[Origin.ACCEPTED] == statistics.accepted
    assert statistics.origins[Origin.BONUS] + statistics.origins[Origin.RESAMPLED] == len(drafted)
    assert statistics.draft_seconds == pytest.approx(sum(round.draft_seconds for round in rounds))
    assert statistics.target_seconds == pytest.approx(sum(round.verify_seconds for round in rounds))
    assert sum(statistics.accepted_per_round) == len(drafted)


def test_a_verdict_that_is_not_known_is_an_error() -> None:
    round = make_round(0, 2, 1)
    strange = replace(round.drafted[1], verdict="unheard of")
    with pytest.raises(KeyError, match="unheard of"):
        Statistics.of([replace(round, drafted=(round.drafted[0], strange))])


@given(answers())
def test_strategies_add_up_to_the_whole(rounds: list[Round]) -> None:
    statistics = Statistics.of(rounds)
    parts = statistics.strategies.values()
    for name in ("drafted_rounds", "drafted", "accepted", "rejected", "ignored"):
        assert sum(getattr(part, name) for part in parts) == getattr(statistics, name)
    spent = sum(part.draft_seconds for part in parts) + statistics.fruitless_seconds
    assert statistics.draft_seconds == pytest.approx(spent)


@given(answers())
def test_acceptance_by_position_is_counted_round_by_round(rounds: list[Round]) -> None:
    statistics = Statistics.of(rounds)
    drafts = [round.drafted for round in rounds if round.drafted]

    def accepted_at(position: int) -> int:
        return sum(len(draft) > position and draft[position].verdict is Verdict.ACCEPTED for draft in drafts)

    longest = max(map(len, drafts), default=0)
    counts = [accepted_at(position) for position in range(longest)]
    assert statistics.accepted_at == tuple(counts)
    drafted = [sum(len(draft) > position for draft in drafts) for position in range(longest)]
    judged = [
        sum(len(draft) > position and draft[position].verdict in JUDGED for draft in drafts)
        for position in range(longest)
    ]
    assert statistics.acceptance_by_place == tuple(map(truediv, counts, drafted))
    assert statistics.judged_acceptance_by_place == tuple(
        here / there if there else None for here, there in zip(counts, judged, strict=True)
    )
    assert statistics.acc_per_pos == tuple(count / len(drafts) for count in counts)


def test_ratios_of_a_small_answer() -> None:
    statistics = Statistics.of(
        [
            make_round(0, 4, 4, draft_ms=2),
            make_round(1, 4, 2, draft_ms=2),
            make_round(2, 0, 0, draft_ms=0),
            make_round(3, 2, 0, draft_ms=1),
        ]
    )
    assert statistics.acceptance_rate == 6 / 10
    assert statistics.alpha == 6 / 8
    assert statistics.tau == 1 + 6 / 3
    assert statistics.draft_length == 10 / 3
    assert statistics.tokens_per_pass == 10 / 4
    assert statistics.draft_share == 6 / 10
    assert statistics.seconds == pytest.approx(0.04)
    assert statistics.tokens_per_second == pytest.approx(250)
    assert statistics.target_seconds == pytest.approx(0.024)
    assert statistics.draft_seconds == pytest.approx(0.005)
    assert statistics.engine_overhead == pytest.approx(1 - 0.028 / 0.04)
    assert statistics.accepted_per_round == [1, 0, 1, 0, 1]
    assert statistics.accepted_drafts == 2


def test_a_whole_answer_takes_the_time_of_its_totals(engine: Engine) -> None:
    trace = answer(engine, max_tokens=8, strategy="draft-simple:n_max=2")
    assert trace.totals is not None
    assert Statistics.of_answer(trace).seconds == trace.totals.seconds
    last = trace.rounds[-1]
    assert Statistics.of_answer(Trace(trace.header, trace.rounds)).seconds == last.offset + last.seconds


def test_places_of_a_small_answer() -> None:
    statistics = Statistics.of([make_round(0, 4, 4), make_round(1, 4, 2), make_round(2, 2, 0)])
    assert statistics.lengths == [0, 0, 1, 0, 2]
    assert statistics.acc_per_pos == (2 / 3, 2 / 3, 1 / 3, 1 / 3), "as llama.cpp's line of that name"
    assert statistics.acceptance_by_place == (2 / 3, 2 / 3, 1 / 2, 1 / 2)
    assert statistics.judged_acceptance_by_place == (2 / 3, 1.0, 1 / 2, 1.0)


def test_blocks_have_no_judged_acceptance_by_place() -> None:
    block = make_round(0, 3, 2)
    drafted = (replace(block.drafted[0], h=0.4), *block.drafted[1:])
    statistics = Statistics.of([replace(block, drafted=drafted)])
    assert statistics.acceptance_by_place == (1.0, 1.0, 0.0)
    assert statistics.judged_acceptance_by_place == (None, None, None)


def test_drafts_behind_a_stop_are_ignored_and_not_judged() -> None:
    statistics = Statistics.of([make_round(0, 4, 2, cut=True)])
    assert (statistics.accepted, statistics.rejected, statistics.ignored) == (2, 0, 2)
    assert statistics.acceptance_rate == 0.5
    assert statistics.alpha == 1.0
    assert statistics.emitted == 2


def test_nothing_yet_has_no_ratios() -> None:
    statistics = Statistics()
    assert statistics == Statistics.of([])
    assert statistics.rounds == statistics.drafted == statistics.emitted == 0
    assert statistics.seconds == 0
    assert statistics.acceptance_rate is statistics.alpha is statistics.tau is None
    assert statistics.tokens_per_second is statistics.tokens_per_pass is None
    assert statistics.draft_share is statistics.engine_overhead is None
    assert statistics.acc_per_pos == ()


def test_without_drafts_acceptance_is_undefined_and_the_rest_is_not() -> None:
    statistics = Statistics.of([make_round(i, 0, 0, draft_ms=0) for i in range(5)])
    assert statistics.acceptance_rate is statistics.alpha is statistics.tau is None
    assert statistics.tokens_per_pass == 1
    assert statistics.draft_share == 0
    assert statistics.tokens_per_second == pytest.approx(100)
    assert statistics.origins[Origin.PLAIN] == 5


def test_reset_counts_time_from_its_own_first_round() -> None:
    rounds = [make_round(i, 4, 2) for i in range(10)]
    statistics = Statistics.of(rounds[6:])
    assert statistics.rounds == 4
    assert statistics.seconds == pytest.approx(0.04)
    assert statistics.tokens_per_second == pytest.approx(12 / 0.04)


def test_an_answer_that_nobody_ended_counts_from_its_beginning() -> None:
    statistics = Statistics.of_answer(Trace(make_header(), [make_round(0, 4, 2, offset=0.5)]))
    assert (statistics.start, statistics.end) == (0.0, pytest.approx(0.51))


def test_folds_do_not_share_state() -> None:
    filled, empty = Statistics(), Statistics()
    filled.add(make_round(0, 4, 2))
    assert empty == Statistics()


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("none", ()),
        ("draft-simple:n_max=4", ("draft-simple",)),
        ("ngram-mod+draft-simple:n_max=4:p_min=0.5", ("ngram-mod", "draft-simple")),
        ("ngram-mod:n_min=2+draft-simple", ("ngram-mod", "draft-simple")),
    ],
)
def test_strategy_names(spec: str, names: tuple[str, ...]) -> None:
    assert strategy_names(spec) == names


# The expected lines are what llama.cpp's own functions print (common_speculative_draft, _accept
# and _print_stats and the end of print_timings, compiled from the sources inside llama-cpp-python
# 0.3.36) when they are led through the same rounds.


def test_llama_cpp_lines_of_two_strategies() -> None:
    rounds = [
        make_round(0, 4, 2, "draft-simple", draft_ms=1.1),
        make_round(1, 3, 3, "ngram-mod", draft_ms=0.05),
        make_round(2, 0, 0, None, draft_ms=0.07, draft_end="no match"),
        make_round(3, 0, 0, None, draft_ms=0),
        make_round(4, 4, 4, "draft-simple", draft_ms=1.234),
    ]
    lines = llama_cpp_lines(Statistics.of(rounds), ["ngram-mod", "draft-simple"], n_max=4)
    assert lines == [
        "draft acceptance = 0.81818 (    9 accepted /    11 generated), mean len =  4.00",
        "     acc per pos = (1.000, 1.000, 0.667, 0.333)",
        "statistics        ngram-mod: #calls(b,g,a) =    1      4      1, #gen drafts =      1, "
        "#acc drafts =     1, #gen tokens =      3, #acc tokens =     3, #mean acc len = 4.00, "
        "#acc rate/pos = (1.000, 1.000, 1.000), dur(b,g,a) = 0.000, 0.050, 0.000 ms",
        "statistics     draft-simple: #calls(b,g,a) =    1      3      2, #gen drafts =      2, "
        "#acc drafts =     2, #gen tokens =      8, #acc tokens =     6, #mean acc len = 4.00, "
        "#acc rate/pos = (1.000, 1.000, 0.500, 0.500), dur(b,g,a) = 0.000, 2.404, 0.000 ms",
    ]


def test_llama_cpp_lines_list_every_position_a_draft_may_have() -> None:
    rounds = [
        make_round(0, 4, 1, draft_ms=1.1),
        make_round(1, 4, 0, draft_ms=2),
        make_round(2, 2, 2, draft_ms=0.5),
    ]
    assert llama_cpp_lines(Statistics.of(rounds), ["draft-simple"], n_max=8) == [
        "draft acceptance = 0.30000 (    3 accepted /    10 generated), mean len =  2.00",
        "     acc per pos = (0.667, 0.333, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000)",
        "statistics     draft-simple: #calls(b,g,a) =    1      3      3, #gen drafts =      3, "
        "#acc drafts =     2, #gen tokens =     10, #acc tokens =     3, #mean acc len = 2.00, "
        "#acc rate/pos = (0.667, 0.333), dur(b,g,a) = 0.000, 3.600, 0.000 ms",
    ]
    default = llama_cpp_lines(Statistics.of(rounds), ["draft-simple"])
    assert default[1] == "     acc per pos = (0.667, 0.333, 0.000, 0.000)"


def test_llama_cpp_lines_where_nothing_was_found() -> None:
    rounds = [
        make_round(0, 0, 0, None, draft_ms=0.02, draft_end="no match"),
        make_round(1, 0, 0, None, draft_ms=0.03, draft_end="no match"),
    ]
    assert llama_cpp_lines(Statistics.of(rounds), ["prompt-lookup"], n_max=8) == [
        "statistics    prompt-lookup: #calls(b,g,a) =    1      2      0, #gen drafts =      0, "
        "#acc drafts =     0, #gen tokens =      0, #acc tokens =     0, "
        "dur(b,g,a) = 0.000, 0.050, 0.000 ms"
    ]


def test_llama_cpp_lines_where_nothing_was_accepted() -> None:
    lines = llama_cpp_lines(Statistics.of([make_round(0, 2, 0)]), ["draft-simple"])
    assert lines[0].startswith("draft acceptance = 0.00000 (    0 accepted /     2 generated)")
    assert lines[2].endswith(", #acc rate/pos = (), dur(b,g,a) = 0.000, 1.000, 0.000 ms")


def test_llama_cpp_prints_nothing_without_a_strategy() -> None:
    rounds = [make_round(i, 0, 0) for i in range(3)]
    assert llama_cpp_lines(Statistics.of(rounds), strategy_names("none")) == []


def test_alpha_is_undefined_for_a_block() -> None:
    round = make_round(0, length=3, accepted=1)
    judged = replace(round.drafted[1], h=0.4)
    block = replace(round, drafted=(round.drafted[0], judged, round.drafted[2]))
    assert Statistics.of([round]).alpha == 0.5
    for rounds in ([block], [round, block]):
        statistics = Statistics.of(rounds)
        assert statistics.alpha is None
        assert statistics.strategies["draft-simple"].alpha is None
        assert statistics.tau == 2


def test_rounds_in_which_nobody_was_asked_are_no_calls() -> None:
    rounds = [
        replace(make_round(0, 3, 1), asked=("ngram-mod", "draft-simple")),
        replace(make_round(1, 3, 1, "ngram-mod"), asked=("ngram-mod",)),
        replace(make_round(2, 0, 0, draft_end="not worth its cost"), asked=()),
        replace(make_round(3, 0, 0, draft_end="no match"), asked=("ngram-mod",)),
        replace(make_round(4, 0, 0, draft_end="answer at its length limit"), asked=()),
    ]
    statistics = Statistics.of(rounds)
    assert statistics.attempts == 3
    lines = llama_cpp_lines(statistics, ["ngram-mod", "draft-simple"])
    assert "#calls(b,g,a) =    1      3      1" in lines[-2]
    assert "#calls(b,g,a) =    1      1      1" in lines[-1]


def test_a_round_says_who_was_asked(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=1", max_tokens=7, ignore_eos=True)
    assert [round.asked for round in trace.rounds] == [("draft-simple",)] * (len(trace.rounds) - 1) + [()]
    assert trace.rounds[-1].draft_end == "answer at its length limit"
    assert answer(engine, max_tokens=3).rounds[0].asked is None


def test_a_draft_of_no_name_counts_for_the_answer_alone() -> None:
    statistics = Statistics.of([make_round(0, 4, 2, None), make_round(1, 3, 1, "suffix")])
    assert (statistics.drafted, statistics.accepted) == (7, 3)
    assert {name: (drafts.drafted, drafts.accepted) for name, drafts in statistics.strategies.items()} == {
        "suffix": (3, 1)
    }


@given(st.lists(answers(), max_size=3))
def test_pooled_answers_are_sums_whose_ratios_are_pooled(several: list[list[Round]]) -> None:
    pooled = Statistics.pooled(map(Statistics.of, several))
    rounds = [round for answer in several for round in answer]
    together = Statistics.of(rounds)
    assert (pooled.rounds, pooled.emitted, pooled.verdicts) == (
        together.rounds, together.emitted, together.verdicts
    )  # fmt: skip
    assert (pooled.alpha, pooled.tau) == (together.alpha, together.tau)
    assert pooled.accepted_per_round == together.accepted_per_round
    assert pooled.seconds == pytest.approx(sum(Statistics.of(answer).seconds for answer in several))
    assert {name: drafts.drafted for name, drafts in pooled.strategies.items()} == {
        name: drafts.drafted for name, drafts in together.strategies.items()
    }


def test_lines_tell_what_beginning_and_learning_took(engine: Engine) -> None:
    strategy = "ngram-mod:n_match=2:n_min=0+draft-simple:n_max=3"
    trace = answer(engine, "abcabcabd abc" * 4, strategy=strategy, max_tokens=24, ignore_eos=True)
    statistics = Statistics.of(trace.rounds)
    first, *later = trace.rounds
    assert list(first.begin_seconds) == ["ngram-mod", "draft-simple"]
    assert min(first.begin_seconds.values()) > 0 and not any(round.begin_seconds for round in later)
    for round in trace.rounds:
        assert (
            (0 < round.accept_seconds <= round.sample_seconds) if round.drafted else round.accept_seconds == 0
        )
    for name in first.begin_seconds:
        line = llama_cpp_lines(statistics, ["ngram-mod", "draft-simple"])[-2 if name == "ngram-mod" else -1]
        learned = sum(round.accept_seconds for round in trace.rounds if round.strategy == name)
        begun = first.begin_seconds[name]
        assert f"dur(b,g,a) = {begun * 1000:.3f}, " in line and line.endswith(f", {learned * 1000:.3f} ms")
