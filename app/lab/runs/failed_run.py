"""The record of a run that could not be done."""

from __future__ import annotations

from app.engine.types import FinishReason
from app.lab.experiment import Experiment, Job
from app.lab.runs.run_record import RunRecord


def failed_record(experiment: Experiment, job: Job, problem: str) -> RunRecord:
    """It has no tokens and no times; `problem` says why."""
    return RunRecord(
        strategy=experiment.lanes[job.lane].strategy,
        category=experiment.prompts[job.prompt].category,
        prompt_index=job.prompt,
        repeat=job.repeat,
        cold=True,
        seed=experiment.sampling.seed,
        token_ids=(),
        text="",
        n_tokens=0,
        seconds=0.0,
        tokens_per_second=None,
        prompt_tokens=0,
        prompt_seconds=0.0,
        draft_prompt_seconds=0.0,
        first_token_seconds=None,
        rounds=0,
        drafted=0,
        accepted=0,
        rejected=0,
        ignored=0,
        acceptance_rate=None,
        alpha=None,
        tau=None,
        draft_share=None,
        drafted_rounds=0,
        target_seconds=0.0,
        draft_seconds=0.0,
        engine_overhead=None,
        speedup=None,
        identical_to_baseline=None,
        first_divergence=None,
        finish_reason=FinishReason.FAILED,
        lane=job.lane,
        error=problem,
    )
