"""Which quantisation is the fastest with drafts: said only as far as the intervals show it."""

from __future__ import annotations

import re

import msgspec
import pytest

from app.lab.quants import quant_rows, quants_experiment
from app.lab.report.report import Report, make_report
from app.lab.report.verdict import verdict
from app.lab.runs.compare import TraceStore, compared_runs
from tests.lab.report.reports import made_experiment, made_records, pair_info

KINDS = ("Q4_0", "Q4_K - Medium", "F16")


def made(*speeds: float, repeats: int = 3, drift: float = 0.003) -> Report:
    """Tokens/s of none and with drafts, for each kind."""
    base = made_experiment(repeats=repeats).with_lanes(())
    experiment = quants_experiment(base, [(kind, f"/{kind}.gguf") for kind in KINDS], "draft-simple")
    records = {
        job: msgspec.structs.replace(
            record, tokens_per_second=speeds[job.lane] * (1 + 0.01 * job.prompt + drift * job.repeat)
        )
        for job, record in made_records(experiment).items()
    }
    pairs, passes = {}, {}
    for lane in range(len(experiment.lanes)):
        info, kind = pair_info(), KINDS[lane // 2]
        target = msgspec.structs.replace(
            info.target, path=f"/{kind}.gguf", quantisation=kind, size=10**6 * (1 + lane // 2)
        )
        pairs[lane] = msgspec.structs.replace(info, target=target)
        passes[experiment.pair_of(lane)] = [{1: 1.0, 3: 2.0}, {1: 1.0, 3: 2.5}]
    return make_report(experiment, compared_runs(experiment, records, TraceStore()), pairs, passes=passes)


@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        (
            (10, 12, 11, 18, 5, 9),
            "Q4_K_M is the fastest with drafts: 18.1 tokens/s, 1.50× the speed of Q4_0. "
            "Its file has 2.00 MB, 2.00× the smallest, Q4_0.",
        ),
        (
            (30, 20, 11, 18, 5, 9),
            "Q4_0 is the fastest with drafts: 20.2 tokens/s, 1.11× the speed of Q4_K_M. "
            "Its file has 1.00 MB, the smallest of these. "
            "Q4_0 without drafts is faster still: 30.2 tokens/s.",
        ),
        (
            (10, 18, 11, 18, 5, 9),
            "With drafts, Q4_0 had the most tokens/s, 18.1, but is not shown to be faster than Q4_K_M.",
        ),
    ],
)
def test_the_fastest_is_named_where_intervals_show_it(speeds: tuple[float, ...], words: str) -> None:
    report = made(*speeds)
    assert re.sub(r" \([\d.]+ to [\d.]+\)", "", verdict(report)) == words
    (v,) = {(row.v(2), row.v(1)) for row in quant_rows(report)}
    assert v[0] is not None and (v[0].median, v[0].min, v[0].max) == (2.25, 2.0, 2.5) and v[1] is None
    assert quant_rows(Report.from_json(report.to_json())) == quant_rows(report)


def test_one_repeat_of_two_prompts_shows_nothing() -> None:
    assert "is not shown to be faster than Q4_0 and F16" in verdict(made(10, 12, 11, 18, 5, 9, repeats=1))


def test_a_machine_that_was_not_steady_shows_nothing() -> None:
    """Files are measured one after the other: what drifts meanwhile would look like a gain."""
    assert verdict(made(10, 12, 11, 30, 5, 9, drift=-0.07)).endswith("so the others may be as fast.")


def test_other_models_are_no_quantisations() -> None:
    report = made(10, 12, 11, 18, 5, 9)
    first = report.pairs[0]
    other = msgspec.structs.replace(first, target=msgspec.structs.replace(first.target, n_params=7))
    assert quant_rows(msgspec.structs.replace(report, pairs=(other, *report.pairs[1:]))) == ()
