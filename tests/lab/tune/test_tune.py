"""Tune for me: what is tried, what wins, and when nothing does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from typing_extensions import override

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.process.host import ThreadHome
from app.engine.process.messages import AnyCommand, Event, Finished, Generate, RoundFinished
from app.engine.strategy import StrategySpec
from app.engine.types import ModelInfo, PairInfo, Sampling
from app.lab.experiment import Experiment, Job, Lane, Prompt, make_experiment
from app.lab.report.summary import SpeedFinding, Speedup
from app.lab.runs.events import Control, Paused, RunDone, RunStarted
from app.lab.runs.record import RunRecord
from app.lab.tune.search import Planned, Search, cannot_work, families, rungs_left, time_share
from app.lab.tune.tuned import FINALISTS, Rung, Score, Tuned, best_by_kind, kept_of, scored, winner_of
from app.lab.tune.tuner import RungBegun, RungDone, TuneEnded, Tuner
from tests.lab.experiments import pair_of

PROMPTS = tuple(Prompt(f"abcabc {n}", "ab"[n % 2]) for n in range(4))
PACE = {"none": 0.010, "draft-simple:n_max=2": 0.004, "draft-simple:n_max=4": 0.006}
STRATEGIES = [f"draft-simple:n_max={n}" for n in (1, 2, 4, 5, 6, 7, 8, 9)]


class Clock:
    """A clock that advances only by the times of the runs."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Paced(ThreadHome):
    """An engine whose tokens take a time that depends on the strategy, on the clock and in the record."""

    def __init__(self, clock: Clock, pace: dict[str, float]) -> None:
        super().__init__()
        self.clock, self.pace = clock, pace
        self.strategy = self.prompt = ""
        self.offset = 0.0

    @override
    def send(self, command: AnyCommand) -> None:
        if isinstance(command, Generate):
            self.strategy, self.offset = command.request.strategy, 0.0
            self.prompt = command.request.prompt
        super().send(command)

    @override
    def receive(self, timeout: float) -> Event | None:
        event = super().receive(timeout)
        if isinstance(event, RoundFinished):
            took = 3 * len(event.round.emitted) * self.pace.get(self.strategy, 0.012)  # as of 24 tokens
            paced = msgspec.structs.replace(
                event.round, offset=self.offset, seconds=took, verify_seconds=took
            )
            self.offset += took
            self.clock.now += took
            return msgspec.structs.replace(event, round=paced)
        if isinstance(event, Finished):
            return msgspec.structs.replace(
                event, totals=msgspec.structs.replace(event.totals, seconds=self.offset)
            )
        return event


def asked(pair_files: tuple[Path, Path]) -> Experiment:
    return Experiment(
        pair_of(pair_files), (), PROMPTS, Sampling(seed=2), max_tokens=8, chat=False, ignore_eos=True
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
    assert [sum(score.kept for score in rung.scores) for rung in result.rungs] == [4, 3, 1]
    begun = [event for event in events if isinstance(event, RungBegun)]
    assert sum(isinstance(event, RungDone) for event in events) == len(begun) == 3
    # The budget was kept, and used.
    assert 0.8 * 30 < result.seconds < 1.2 * 30
    # Every candidate of a rung saw the same prompts.
    for rung in result.rungs:
        assert len({score.answers for score in rung.scores}) == 1


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
    pace = {"none": 0.004, "ngram-mod": 0.0041}
    strategies = ["draft-simple:n_max=4", "ngram-mod"]
    tuner = Tuner(asked(pair_files), lambda: Paced(clock, pace), 10.0, strategies=strategies, clock=clock)
    list(tuner.run())
    assert tuner.result is not None and tuner.result.best == "ngram-mod"
    assert "The best with the draft model, draft-simple:n_max=4, measured 0.33×" in tuner.result.reason
    assert "found a draft in" in tuner.result.reason


def test_where_every_run_is_refused_it_ends_and_says_why(pair_files: tuple[Path, Path]) -> None:
    experiment = msgspec.structs.replace(asked(pair_files), prompts=(Prompt("a" * 3000), Prompt("b" * 3000)))
    tuner = Tuner(experiment, ThreadHome, 60.0, strategies=STRATEGIES[:2], clock=Clock())
    events = list(tuner.run())
    assert sum(isinstance(event, RunDone) for event in events) == 2 * 3
    assert tuner.result is not None
    assert (tuner.result.winner, tuner.result.complete) == ("none", False)
    assert tuner.result.reason.startswith("No setting could be measured: ")
    assert "context has room for" in tuner.result.reason


def test_prompts_that_are_refused_do_not_end_it(pair_files: tuple[Path, Path]) -> None:
    clock = Clock()
    prompts = (Prompt("a" * 3000), Prompt("b" * 3000), Prompt("abc"))
    tuner = Tuner(
        msgspec.structs.replace(asked(pair_files), prompts=prompts),
        lambda: Paced(clock, PACE),
        5.0,
        strategies=["draft-simple:n_max=2"],
        clock=clock,
    )
    list(tuner.run())
    assert tuner.result is not None and tuner.result.winner == "draft-simple:n_max=2"
    assert not any(score.error for rung in tuner.result.rungs for score in rung.scores)


def final(*scores: tuple[str, Speedup]) -> list[Rung]:
    """A last rung, the best first."""
    return [
        Rung(
            24,
            5.0,
            tuple(Score(name, speedup, 0.5, 6, kept=True, low_here=speedup.low) for name, speedup in scores),
        )
    ]


def test_what_is_shown_to_be_faster_wins_before_what_measured_more(pair_files: tuple[Path, Path]) -> None:
    tuner = tuner_of(pair_files, PACE, 10.0)
    rungs = final(("suffix", Speedup(1.49, 0.56, 3.96, 6)), ("ngram-mod", Speedup(1.30, 1.28, 1.33, 6)))
    result = tuner.conclude(rungs, True)
    assert result.winner == result.best == "ngram-mod"
    assert result.speedup == Speedup(1.30, 1.28, 1.33, 6)
    assert "suffix measured 1.49× (0.56 to 3.96), which may be chance" in result.reason


def test_a_pause_is_no_search_time(pair_files: tuple[Path, Path]) -> None:
    clock, control = Clock(), Control()
    tuner = Tuner(
        asked(pair_files),
        lambda: Paced(clock, PACE),
        10.0,
        strategies=STRATEGIES[:2],
        clock=clock,
        control=control,
    )
    paused = 0
    for event in tuner.run():
        if isinstance(event, RunStarted) and not paused:
            control.pause()
        if isinstance(event, Paused):
            paused += 1
            clock.now += 3600.0
            control.resume()
    assert paused == 1
    assert tuner.result is not None and tuner.result.complete
    assert 8.0 < tuner.result.seconds < 12.0


@pytest.mark.parametrize(
    ("slowest", "said"),
    [
        (Speedup(0.9, 0.88, 0.92, 6), "does not pay here"),
        (Speedup(0.9, 0.4, 2.0, 6), "too little was measured"),
        (Speedup(0.9), "too little was measured"),
    ],
)
def test_it_says_that_it_does_not_pay_only_where_that_is_shown(
    pair_files: tuple[Path, Path], slowest: Speedup, said: str
) -> None:
    tuner = tuner_of(pair_files, PACE, 10.0)
    rungs = final(("suffix", Speedup(0.95, 0.93, 0.97, 6)), ("ngram-mod", slowest))
    result = tuner.conclude(rungs, True)
    assert result.winner == "none" and said in result.reason
    assert rungs[0].refuted is (said == "does not pay here")


def groups_of(experiment: Experiment, ratios: dict[tuple[int, int], float]) -> list[dict[int, RunRecord]]:
    """A group for each (repeat, prompt), with the first candidate's speed-up there."""
    groups = []
    for (repeat, prompt), ratio in ratios.items():
        runs = {lane: RunRecord.of_failed(experiment, Job(repeat, prompt, lane), "") for lane in (0, 1)}
        told = {"speedup": ratio, "drafted": 9, "accepted": 9}
        groups.append({lane: msgspec.structs.replace(run, **told) for lane, run in runs.items()})
    return groups


def test_what_gains_on_these_prompts_wins_though_others_may_differ(pair_files: tuple[Path, Path]) -> None:
    """It gains much on some kinds of prompt and nothing on others, so the interval over prompts is wide."""
    experiment = make_experiment(asked(pair_files).with_lanes([Lane("suffix")]))
    kinds = {(repeat, prompt): (1.0, 1.6, 1.5, 1.0)[prompt] for repeat in range(2) for prompt in range(4)}
    rung = scored(experiment, groups_of(experiment, kinds), 1.0)
    assert rung is not None and rung.scores[0].speedup is not None
    assert rung.scores[0].speedup.finding is SpeedFinding.SAME
    result = tuner_of(pair_files, PACE, 10.0).conclude([rung], True)
    assert (result.winner, result.headline) == ("suffix", "suffix wins on these prompts")
    assert "similar prompts may gain nothing" in result.reason
    chance = groups_of(experiment, {(0, prompt): 1.5 for prompt in range(4)})
    for at, group in enumerate(chance):
        group[1] = msgspec.structs.replace(group[1], drafted=0, accepted=0, speedup=1.2 + at / 4)
    rung = scored(experiment, chance, 1.0)
    assert rung is not None and winner_of(rung) is None, "nothing was drafted: the times are chance"
    few = {at: ratio for at, ratio in kinds.items() if at[1] in (1, 2)}
    rung = scored(experiment, groups_of(experiment, few), 1.0)
    assert rung is not None and winner_of(rung) is None, "two prompts are too few"


def test_a_head_has_its_own_strategy_in_place_of_draft_simple(pair_files: tuple[Path, Path]) -> None:
    mix = ["suffix", "draft-simple:n_max=4", "suffix+draft-simple:n_max=4"]
    search = Search(make_experiment(asked(pair_files).with_lanes([Lane(spec) for spec in mix])), 10.0)
    model = ModelInfo("head.gguf", "head", "eagle3", "F16", 1, 1, 1, 8, 8, 8, 1, True)
    search.suit(PairInfo(model, model))
    assert search.left == ("suffix", "draft-eagle3:n_max=4", "suffix+draft-eagle3:n_max=4")
    assert [lane.strategy for lane in search.experiment.lanes] == ["none", *search.left]


def test_conversations_stay_whole_in_every_round(pair_files: tuple[Path, Path]) -> None:
    turns = tuple(
        Prompt(text, name, before=("abc", "abd")[:at])
        for name in ("qa", "code", "chat")
        for at, text in enumerate(("abc", "abd", "abe"))
    )
    clock = Clock()
    experiment = msgspec.structs.replace(asked(pair_files), prompts=turns)
    tuner = Tuner(experiment, lambda: Paced(clock, PACE), 30.0, strategies=STRATEGIES, clock=clock)
    done = [event.record for event in tuner.run() if isinstance(event, RunDone)]
    assert {record.turn for record in done} == {1, 2, 3}
    assert not any(record.failure for record in done)


def test_a_round_ends_only_when_all_have_answered_its_last_prompt(pair_files: tuple[Path, Path]) -> None:
    _, events = tuned(pair_files, PACE, budget=30.0)
    lanes: list[int] = []
    groups: list[Counter[tuple[int, int]]] = []
    for event in events:
        if isinstance(event, RungBegun):
            lanes.append(1 + len(event.strategies))
            groups.append(Counter())
        elif isinstance(event, RunDone):
            groups[-1][event.job.repeat, event.job.prompt] += 1
    assert len(groups) > 1 and max(map(len, groups)) > 1
    assert [set(group.values()) for group in groups] == [{count} for count in lanes]


def test_every_round_begins_with_another_prompt(pair_files: tuple[Path, Path]) -> None:
    """The same prompts would select the same winners."""
    clock = Clock()
    home = Paced(clock, PACE)
    first: list[str] = []
    begun = False
    for event in Tuner(asked(pair_files), lambda: home, 30.0, strategies=STRATEGIES, clock=clock).run():
        if isinstance(event, RungBegun):
            begun = True
        elif isinstance(event, RunDone) and begun:
            first.append(home.prompt)
            begun = False
    assert len(first) == len(set(first)) == 3


def test_repeats_of_a_prompt_are_no_further_prompts(pair_files: tuple[Path, Path]) -> None:
    """Two prompts remain two measurements of similar prompts, however often they are repeated."""
    experiment = make_experiment(asked(pair_files).with_lanes([Lane("suffix")]))
    ratios = {(repeat, prompt): (1.2, 1.8)[prompt] for repeat in range(50) for prompt in range(2)}
    rung = scored(experiment, groups_of(experiment, ratios), 1.0)
    assert rung is not None and rung.scores[0].speedup is not None
    assert not rung.scores[0].over_repeats
    assert rung.scores[0].speedup.finding is SpeedFinding.UNSURE
    assert rung.scores[0].answers == 100


def test_with_one_prompt_the_interval_is_over_its_repeats_and_says_so(pair_files: tuple[Path, Path]) -> None:
    only = msgspec.structs.replace(asked(pair_files), prompts=PROMPTS[:1])
    experiment = make_experiment(only.with_lanes([Lane("suffix")]))
    rung = scored(experiment, groups_of(experiment, {(n, 0): 1.5 + n / 100 for n in range(5)}), 1.0)
    assert rung is not None and rung.scores[0].speedup is not None
    assert rung.scores[0].speedup.repeats == 5 and rung.scores[0].over_repeats
    result = tuner_of(pair_files, PACE, 10.0).conclude([rung], True)
    assert result.winner == "suffix"
    assert "the interval covers only its repeats" in result.reason


def test_a_search_goes_on_with_what_is_still_in_and_what_was_not_tried(pair_files: tuple[Path, Path]) -> None:
    first, _ = tuned(pair_files, PACE, budget=3.0)
    assert first.tried < 8
    clock = Clock()
    more = Tuner(
        asked(pair_files), lambda: Paced(clock, PACE), 30.0, strategies=STRATEGIES, clock=clock, before=first
    )
    begun = next(event for event in list(more.run()) if isinstance(event, RungBegun))
    tried = {score.strategy for score in first.rungs[0].scores}
    assert set(begun.strategies) >= set(STRATEGIES) - tried
    assert begun.rung == len(first.rungs)
    assert more.result is not None
    assert more.result.rungs[: len(first.rungs)] == first.rungs
    assert more.result.tried == 8 and more.result.complete
    assert more.result.winner == "draft-simple:n_max=2"
    assert more.result.seconds > first.seconds + 20
    finalists = {score.strategy for score in more.result.rungs[-1].scores}
    assert set(more.result.left(STRATEGIES)) == finalists, "all were tried: what is left are the best"


@pytest.mark.parametrize("runs", [0, 4])
def test_a_search_that_is_cancelled_while_it_goes_on_leaves_what_was_found(
    pair_files: tuple[Path, Path], runs: int
) -> None:
    first, _ = tuned(pair_files, PACE, budget=30.0)
    assert first.complete
    clock, control = Clock(), Control()
    more = Tuner(
        asked(pair_files),
        lambda: Paced(clock, PACE),
        30.0,
        strategies=STRATEGIES,
        control=control,
        clock=clock,
        before=first,
    )
    done = 0
    if not runs:
        control.cancel()
    for event in more.run():
        done += isinstance(event, RunDone)
        if done == runs:
            control.cancel()
    assert more.result == first


def test_time_too_short_for_all_tries_the_first_ones(pair_files: tuple[Path, Path]) -> None:
    result, _ = tuned(pair_files, PACE, budget=3.0)
    assert 0 < len(result.rungs[0].scores) < 8
    assert {score.strategy for score in result.rungs[0].scores} == set(STRATEGIES[: result.tried])
    assert f"Only {result.tried} of 8 candidates could be tried" in result.reason


@pytest.mark.parametrize(
    ("runs", "said"), [(20, "not finished"), (1, "cancelled before a setting was measured")]
)
def test_cancel_ends_it_with_what_was_found(pair_files: tuple[Path, Path], runs: int, said: str) -> None:
    control = Control()
    tuner = tuner_of(pair_files, PACE, 30.0, control)
    done = 0
    for event in tuner.run():
        done += isinstance(event, RunDone)
        if done == runs:
            control.cancel()
    assert tuner.result is not None
    assert not tuner.result.complete
    assert said in tuner.result.reason


def test_strategies_that_cannot_be_used_are_refused(pair_files: tuple[Path, Path]) -> None:
    with pytest.raises(SettingError):
        Tuner(asked(pair_files), ThreadHome, 10.0, strategies=["nosuch"])


def test_candidates_can_all_be_read_and_are_all_different() -> None:
    every = settings_of(has_draft=True)
    assert len({str(StrategySpec.parse(spec)) for spec in every}) == len(every) > 45
    without = settings_of(has_draft=False)
    assert without and not any(StrategySpec.parse(spec).needs_draft for spec in without)


def test_every_registered_strategy_is_tried_alone_and_with_a_draft_model() -> None:
    tried = {family.name for family in families(has_draft=True)}
    for kind in KINDS.values():
        assert (kind.name in tried) is not (kind.is_synthetic or kind.is_head)
        if not kind.needs_draft and not kind.is_synthetic:
            assert (f"{kind.name}+draft-simple" in tried) == (not kind.is_head)
    assert [left_out.what for left_out in cannot_work(has_draft=True)] == ["oracle"]
    without = {left_out.what: left_out.reason for left_out in cannot_work(has_draft=False)}
    assert without["strategies with a draft model"] == "there is no draft model"


def test_a_draft_is_drawn_only_above_temperature_0() -> None:
    assert not any("sample=1" in spec for spec in settings_of(has_draft=True))
    (drafts,) = (each for each in families(has_draft=True, temperature=0.8) if each.name == "draft-simple")
    assert "draft-simple:n_max=4:sample=1" in drafts.settings


def settings_of(*, has_draft: bool) -> list[str]:
    return [spec for family in families(has_draft=has_draft) for spec in family.settings]


def test_settings_that_cannot_win_by_the_cost_model_are_not_run(pair_files: tuple[Path, Path]) -> None:
    """Nothing repeats in these prompts and answers: what copies long passages finds no draft."""
    clock = Clock()
    pace = {"none": 0.010, "draft-simple:n_max=1": 0.004}
    short = msgspec.structs.replace(asked(pair_files), max_tokens=8)
    tuner = Tuner(short, lambda: Paced(clock, pace), 16.0, clock=clock)
    events = list(tuner.run())
    (planned,) = (event for event in events if isinstance(event, Planned))
    result = tuner.result
    assert result is not None and result.complete
    every = {lane.strategy for lane in tuner.experiment.lanes if lane.strategy != "none"}
    out = {strategy for left_out in result.left_out for strategy in left_out.strategies}
    measured = {score.strategy for rung in result.rungs for score in rung.scores}
    assert "ngram-mod" in out and not out & measured
    assert len(out) == len(every) - planned.promising and len(measured) == planned.tried
    assert f"{len(out)} more settings cannot win by the cost model" in result.reason
    assert f"{planned.promising} of {len(every)} settings may win on these prompts; measuring them takes" in (
        planned.words
    )
    left = set(result.left(sorted(every)))
    assert not out & left and out | measured | left == every
    assert result.seconds < 1.3 * 16


def test_where_time_is_short_most_of_it_is_not_for_calibrating(pair_files: tuple[Path, Path]) -> None:
    clock = Clock()
    short = msgspec.structs.replace(asked(pair_files), max_tokens=8)
    tuner = Tuner(short, lambda: Paced(clock, {"none": 0.010}), 1.5, clock=clock)
    list(tuner.run())
    assert tuner.result is not None and tuner.result.rungs


def test_a_recommendation_rests_on_three_prompts_where_there_are_so_many(
    pair_files: tuple[Path, Path],
) -> None:
    result, _ = tuned(pair_files, PACE, budget=2.0)
    assert {score.answers for score in result.rungs[-1].scores} >= {3} or not result.complete
    assert result.winner == "none" or result.speedup is None or result.speedup.prompts >= 3


def test_with_several_kinds_of_prompt_there_is_an_answer_for_each(pair_files: tuple[Path, Path]) -> None:
    record = RunRecord.of_failed(asked(pair_files).with_lanes([Lane("suffix")]), Job(0, 0, 0), "")

    def run(category: str, speedup: float, accepted: int = 9) -> RunRecord:
        return msgspec.structs.replace(record, category=category, speedup=speedup, accepted=accepted)

    runs = [("suffix", run("rewrite", 1.5)), ("suffix", run("rewrite", 1.7)), ("suffix", run("talk", 0.8))]
    runs += [
        ("ngram-mod", run("talk", 1.4, accepted=0)),
        ("prompt-lookup", run("rewrite", 1.7)),
        ("suffix", run("talk", 0.9)),
    ]
    rewrite, talk, story = best_by_kind([*runs, ("suffix", run("story", 1.2, accepted=0))])
    assert str(rewrite) == "rewrite: suffix 1.60×", "the one answer of prompt-lookup may be luck"
    assert (str(talk), str(story)) == ("talk: none", "story: none")


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
            shares.append(time_share(rungs_left(size), left))
            left -= shares[-1]
        assert left == pytest.approx(0)
        assert shares[-1] == max(shares)
