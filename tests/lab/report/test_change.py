"""Two reports compared: which lanes and prompts count, what became faster, what else differs."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from app.engine.errors import UserError
from app.lab.report.change import change_between
from app.lab.report.report import Report
from tests.lab.report.reports import made_report

replace = msgspec.structs.replace


def faster(report: Report, factors: dict[int, float]) -> Report:
    """The report with other tokens/s, by lane, and the speed-ups that follow."""
    base = report.lanes[0].baseline
    runs = tuple(
        replace(
            run,
            tokens_per_second=run.tokens_per_second * factors.get(run.lane, 1.0),
            speedup=run.speedup and run.speedup * factors.get(run.lane, 1.0) / factors.get(base, 1.0),
        )
        for run in report.runs
    )
    return replace(report, runs=runs)


def test_factors_are_those_between_the_two_measurements() -> None:
    before = made_report()
    change = change_between(before, faster(before, {0: 2.0, 1: 3.0}))
    by_name = {lane.name: lane for lane in change.lanes}
    none, drafting = by_name["none"], by_name["draft-simple"]
    assert none.speed is not None and none.speed.factor == pytest.approx(2)
    assert none.gain is None
    assert drafting.speed is not None and drafting.speed.factor == pytest.approx(3)
    assert drafting.gain is not None and drafting.gain.factor == pytest.approx(1.5)
    assert drafting.same_tokens == drafting.compared == 6
    assert change.prompts == 2
    assert change.differences == ()


def test_the_verdict_names_what_is_shown() -> None:
    before = made_report()
    change = change_between(before, faster(before, {1: 3.0, 2: 0.5}))
    assert change.verdict.startswith("Faster: draft-simple (3.00×")
    assert f"Slower: {before.lanes[2].name} (0.50×" in change.verdict
    assert "No difference shown: none" in change.verdict


def test_prompts_are_matched_by_their_text() -> None:
    before = made_report()
    swapped = {0: 1, 1: 0}
    after = replace(
        before,
        prompts=before.prompts[::-1],
        runs=tuple(replace(run, prompt_index=swapped[run.prompt_index]) for run in before.runs),
    )
    for lane in change_between(before, after).lanes:
        assert lane.speed is not None
        assert lane.speed.low == lane.speed.high == pytest.approx(1)


def test_only_shared_prompts_and_lanes_count() -> None:
    before = made_report()
    other = replace(before.prompts[0], prompt="measured later only")
    after = replace(
        before,
        prompts=(other, before.prompts[1]),
        lanes=(before.lanes[0], before.lanes[1], replace(before.lanes[2], name="another")),
    )
    change = change_between(before, after)
    assert change.prompts == 1
    assert all(lane.compared == 3 for lane in change.lanes)
    assert change.only_before == (before.lanes[2].name,)
    assert change.only_after == ("another",)


def test_medians_are_of_the_answers_that_both_have() -> None:
    """The second prompt is answered faster: a median with it would not compare."""
    before = made_report()
    after = replace(before, runs=tuple(run for run in before.runs if run.lane == 0 or not run.prompt_index))
    lane = change_between(before, after).lanes[1]
    assert lane.compared == 3
    assert lane.before.tokens_per_second == lane.after.tokens_per_second
    assert lane.before.n_tokens == lane.after.n_tokens == 300


def test_nothing_in_common_is_said() -> None:
    before = made_report()
    prompts = tuple(replace(prompt, prompt=f"other {prompt.prompt}") for prompt in before.prompts)
    with pytest.raises(UserError, match="no prompt in common"):
        change_between(before, replace(before, prompts=prompts))
    lanes = tuple(replace(lane, name=f"other {lane.name}") for lane in before.lanes)
    with pytest.raises(UserError, match="no lane in common"):
        change_between(before, replace(before, lanes=lanes))


def test_every_other_difference_is_listed() -> None:
    before = made_report()
    target = replace(before.pairs[0].target, size=1)
    after = replace(
        before,
        system=replace(before.system, cpu="another processor"),
        pairs=(replace(before.pairs[0], target=target, draft=None),),
        settings=replace(before.settings, max_tokens=7),
    )
    assert change_between(before, after).differences == (
        f"processor: {before.system.cpu} before, another processor after",
        "target: t.gguf: after, a different file of the same name",
        "draft: d.gguf before, none after",
        f"max_tokens: {before.settings.max_tokens} before, 7 after",
    )


@pytest.mark.parametrize(("old", "new", "other"), [("a", "b", True), ("a", "a", False), ("a", None, False)])
def test_a_file_of_the_same_size_is_told_by_its_checksum(old: str, new: str | None, other: bool) -> None:
    before = made_report()
    pair = before.pairs[0]

    def with_checksum(sha256: str | None) -> Report:
        return replace(before, pairs=(replace(pair, target=replace(pair.target, sha256=sha256)),))

    differences = change_between(with_checksum(old), with_checksum(new)).differences
    assert differences == (("target: t.gguf: after, a different file of the same name",) if other else ())


def test_the_seed_does_not_differ_where_nothing_is_drawn() -> None:
    """An oracle draws its errors by the seed, also at temperature 0."""
    before = made_report()
    sampling = before.settings.sampling
    other = replace(before.settings, sampling=dataclasses.replace(sampling, seed=sampling.seed + 1))
    assert change_between(before, replace(before, settings=other)).differences == ()
    warm = [
        replace(settings, sampling=dataclasses.replace(settings.sampling, temperature=0.5))
        for settings in (before.settings, other)
    ]
    seeds = f"seed: {sampling.seed} before, {sampling.seed + 1} after"
    change = change_between(replace(before, settings=warm[0]), replace(before, settings=warm[1]))
    assert change.differences == (seeds,)
    lanes = (*before.lanes[:2], replace(before.lanes[2], strategy="oracle:alpha=0.9"))
    change = change_between(replace(before, lanes=lanes), replace(before, lanes=lanes, settings=other))
    assert change.differences == (seeds,)


def test_what_disturbed_either_measurement_is_repeated() -> None:
    before = made_report()
    busy = replace(
        before, runs=tuple(replace(run, other_load=float(before.system.cores)) for run in before.runs)
    )
    (doubt,) = change_between(before, busy).doubts
    assert doubt.startswith("After: The machine was busy")
