"""The record of one run, as `run --json` and `bench --json` write it."""

from __future__ import annotations

import msgspec

from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import FinishReason


class Divergence(msgspec.Struct, frozen=True):
    """Where an answer first left its baseline. A token is None where that answer had ended."""

    index: int  # in the answer
    baseline_token: int | None
    token: int | None
    baseline_text: str = ""
    token_text: str = ""
    logit_gap: float | None = None
    """Between the baseline's logits of the two tokens; None where a trace does not hold both."""
    difference: float | None = None
    """How far the same gap is from the one in this answer's own pass: what the batch shapes take away."""
    near_tie: bool | None = None
    """The batch shapes alone explain it. None where nothing tells, and where a rule keeps only the law."""


class RunRecord(msgspec.Struct, frozen=True):
    """The numbers of one run. Seconds are wall time; a ratio whose denominator is zero is None.

    The definitions are those of app.engine.record.stats.
    """

    strategy: str
    category: str | None  # of the prompt, where the prompts have one
    prompt_index: int
    repeat: int
    cold: bool  # began with empty caches and fresh drafters
    seed: int  # the seed in use
    token_ids: tuple[int, ...]
    text: str
    n_tokens: int
    seconds: float  # from the start of round 0
    tokens_per_second: float | None
    prompt_tokens: int
    prompt_seconds: float
    draft_prompt_seconds: float
    first_token_seconds: float | None
    rounds: int
    drafted: int
    accepted: int
    rejected: int
    ignored: int
    acceptance_rate: float | None
    alpha: float | None
    tau: float | None
    draft_share: float | None
    drafted_rounds: int
    target_seconds: float
    draft_seconds: float
    engine_overhead: float | None
    speedup: float | None  # these three compare with a baseline: None where none was measured
    identical_to_baseline: bool | None
    first_divergence: Divergence | None
    finish_reason: FinishReason
    lane: int = 0  # of an experiment with several
    baseline_lane: int | None = None  # the lane that the three comparisons are with
    error: str = ""  # why it failed, or what a drafter could not do behind a whole answer
    draft_prompt_in_rounds: float = 0.0  # of draft_prompt_seconds, within `seconds` too (length=auto)
    other_load: float | None = None  # processor cores that other programs kept busy; None where not known

    @property
    def failure(self) -> str:
        """Why it failed; "" where it did not."""
        return (self.error or self.finish_reason) if self.finish_reason is FinishReason.FAILED else ""

    @property
    def whole_seconds(self) -> float:
        """From the request to the end: reading the prompt and generating."""
        return self.prompt_seconds + self.draft_prompt_seconds - self.draft_prompt_in_rounds + self.seconds

    @classmethod
    def of(
        cls,
        trace: Trace,
        *,
        category: str | None = None,
        prompt_index: int = 0,
        repeat: int = 0,
        lane: int = 0,
    ) -> RunRecord:
        """The record of a trace; one without totals (a crash) counts as failed."""
        header, totals = trace.header, trace.totals
        statistics = Statistics.of(trace.rounds)
        seconds = totals.seconds if totals else statistics.end
        return cls(
            strategy=header.strategy,
            category=category,
            prompt_index=prompt_index,
            repeat=repeat,
            cold=header.cold,
            seed=header.seed,
            token_ids=trace.token_ids,
            text=trace.text,
            n_tokens=statistics.emitted,
            seconds=seconds,
            tokens_per_second=statistics.emitted / seconds if seconds > 0 else None,
            prompt_tokens=header.prompt_tokens,
            prompt_seconds=totals.prompt_seconds if totals else 0.0,
            draft_prompt_seconds=totals.draft_prompt_seconds if totals else 0.0,
            draft_prompt_in_rounds=totals.draft_prompt_in_rounds if totals else 0.0,
            first_token_seconds=totals.first_token_seconds if totals else None,
            rounds=statistics.rounds,
            drafted=statistics.drafted,
            accepted=statistics.accepted,
            rejected=statistics.rejected,
            ignored=statistics.ignored,
            acceptance_rate=statistics.acceptance_rate,
            alpha=statistics.alpha,
            tau=statistics.tau,
            draft_share=statistics.draft_share,
            drafted_rounds=statistics.drafted_rounds,
            target_seconds=statistics.target_seconds,
            draft_seconds=statistics.draft_seconds,
            engine_overhead=1 - statistics.native_seconds / seconds if seconds > 0 else None,
            speedup=None,
            identical_to_baseline=None,
            first_divergence=None,
            finish_reason=totals.finish_reason if totals else FinishReason.FAILED,
            lane=lane,
            error=totals.error if totals else "",
        )

    def to_json(self) -> bytes:
        """The record as it is written to a file: one JSON object on one line."""
        return msgspec.json.encode(self) + b"\n"
