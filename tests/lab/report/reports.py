"""Small made-up reports, for the tests of their exports."""

from __future__ import annotations

import msgspec

from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.types import FinishReason, ModelInfo, ModelOptions, PairInfo, Sampling
from app.lab.depths import at_depths
from app.lab.experiment import Experiment, Job, Lane, Pair, Prompt, make_experiment
from app.lab.report.report import Report, SweepFacts, make_report
from app.lab.runs.compare import TraceStore, compared_runs
from app.lab.runs.record import Divergence, RunRecord
from app.lab.suites import Suite

HOSTILE = "</script><img src=x onerror=alert(1)> & \u2028 |pipe|"
SPEEDS = {0: 10.0, 1: 15.0, 2: 8.0, 3: 12.0}


def model(name: str) -> ModelInfo:
    return ModelInfo(
        f"/home/somebody/{name}", name, "llama", "Q8_0", 12_000_000, 11_000_000, 4, 4096, 2048, 2048, 1, True
    )


def pair_info() -> PairInfo:
    return PairInfo(model("t.gguf"), model("d.gguf"), "same vocabulary")


def made_experiment(lanes: int = 3, repeats: int = 3) -> Experiment:
    strategies = [Lane("draft-simple"), Lane("suffix", HOSTILE), Lane("prompt-lookup")][: lanes - 1]
    return make_experiment(
        Experiment(
            Pair(ModelOptions("/home/somebody/t.gguf"), ModelOptions("/home/somebody/d.gguf")),
            tuple(strategies),
            (Prompt(f"one {HOSTILE}", "code"), Prompt("two", "story")),
            Sampling(seed=3),
            repeats=repeats,
            title=f"A title {HOSTILE}",
        )
    )


def made_records(experiment: Experiment) -> dict[Job, RunRecord]:
    """Speeds by lane, with small effects of repeat and prompt."""
    records = {}
    for job in experiment.jobs():
        seconds = 100 / (SPEEDS[job.lane % 4] * (1 + 0.01 * job.repeat * job.lane + 0.02 * job.prompt))
        drafting = job.lane > 0
        records[job] = msgspec.structs.replace(
            RunRecord.of_failed(experiment, job, ""),
            token_ids=tuple(range(100)),
            n_tokens=100,
            seconds=seconds,
            tokens_per_second=100 / seconds,
            prompt_seconds=0.5,
            first_token_seconds=0.6,
            rounds=40 if drafting else 100,
            drafted=90 if drafting else 0,
            accepted=60 if drafting else 0,
            rejected=20 if drafting else 0,
            ignored=10 if drafting else 0,
            acceptance_rate=60 / 90 if drafting else None,
            alpha=0.75 if drafting else None,
            drafted_rounds=30 if drafting else 0,
            tokens_per_pass=2.5 if drafting else 1.0,
            lengths=(0, 0, 0, 30) if drafting else (),
            accepted_per_round=(6, 6, 0, 18) if drafting else (),
            rejections=(6, 6) if drafting else (),
            alternatives=AlternativeStatistics([3, 1], rows=4, bits=2.0)
            if drafting
            else AlternativeStatistics(),
            draft_seconds=seconds / 10 if drafting else 0.0,
            target_seconds=seconds / 2,
            engine_overhead=0.05,
            finish_reason=FinishReason.LENGTH,
        )
    return records


def made_depths(depths: tuple[int, ...] = (0, 1024), deepest: str = "") -> Report:
    """Three lanes at some depths, each half as much faster than at the one before; at the deepest they fail
    with `deepest`, if it says so."""
    base = made_experiment()
    experiment = at_depths(base, depths, Suite("long", "Long", (Prompt("Read:\n\nOnce"),)))
    records = made_records(experiment)
    for job, record in records.items():
        depth, made = experiment.prompts[job.prompt].depth, record
        if deepest and depth == depths[-1]:
            made = RunRecord.of_failed(experiment, job, deepest)
        elif record.tokens_per_second and job.lane:
            speed = 10 + (record.tokens_per_second - 10) / 2 ** depths.index(depth or 0)
            made = msgspec.structs.replace(record, tokens_per_second=speed, seconds=100 / speed)
        records[job] = msgspec.structs.replace(made, depth=depth)
    compared = compared_runs(experiment, records, TraceStore())
    return make_report(experiment, compared, dict.fromkeys(range(3), pair_info()))


def made_report(lanes: int = 3, repeats: int = 3, sweep: SweepFacts | None = None) -> Report:
    experiment = made_experiment(lanes, repeats)
    records = compared_runs(experiment, made_records(experiment), TraceStore())
    parting = Divergence(4, 1, 2, "<b>", HOSTILE, 0.01, 0.02, True)
    job = Job(0, 0, lanes - 1)
    records[job] = msgspec.structs.replace(
        records[job], identical_to_baseline=False, first_divergence=parting
    )
    return make_report(experiment, records, dict.fromkeys(range(lanes), pair_info()), sweep=sweep)
