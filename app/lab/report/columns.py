"""The columns of the table: their values, texts and definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.base import numbers
from app.lab.report.interval import middle, speedup_words
from app.lab.report.report import ReportLane
from app.lab.report.summary import Summary


@dataclass(frozen=True, slots=True)
class Column:
    """One column; rows are sorted by `value`."""

    key: str
    title: str
    definition: str
    text: Callable[[Summary, ReportLane], str]
    value: Callable[[Summary, ReportLane], float | None]


def _memory(size: int | None) -> str:
    return numbers.NONE if size is None else f"{numbers.digits(size / 1e6)} MB"


def _per_token(seconds: float, summary: Summary) -> float | None:
    return seconds / summary.n_tokens if summary.n_tokens else None


def _equal(summary: Summary) -> str:
    if summary.equal is None:
        return numbers.NONE
    if summary.identical == summary.compared:
        return "identical"
    if summary.equal:
        return f"{summary.near_ties} near-tie{'' if summary.near_ties == 1 else 's'}"
    return f"{summary.identical} of {summary.compared}"


COLUMNS = (
    Column(
        "tokens_per_second",
        "tokens/s",
        "Median over runs of emitted tokens / wall time from the start of round 0.",
        lambda summary, _lane: numbers.digits(middle(summary.tokens_per_second)),
        lambda summary, _lane: middle(summary.tokens_per_second),
    ),
    Column(
        "speedup",
        "speed-up (95 %)",
        "tokens/s over that of strategy none on the same target, prompt and repeat: geometric mean over "
        "prompts. The interval is where it would lie for other, similar prompts at another time.",
        lambda summary, _lane: speedup_words(summary.speedup),
        lambda summary, _lane: summary.speedup.factor if summary.speedup else None,
    ),
    Column(
        "whole_speedup",
        "end to end",
        "The same, including the time to read the prompt: from the request to the last token.",
        lambda summary, _lane: numbers.factor(summary.whole_speedup),
        lambda summary, _lane: summary.whole_speedup,
    ),
    Column(
        "acceptance_rate",
        "acceptance",
        "Accepted / drafted tokens, pooled over all runs.",
        lambda summary, _lane: numbers.percent(summary.acceptance_rate),
        lambda summary, _lane: summary.acceptance_rate,
    ),
    Column(
        "alpha",
        "judged α",
        "Accepted / (accepted + rejected): the chance that a judged draft token passes.",
        lambda summary, _lane: numbers.digits(summary.alpha),
        lambda summary, _lane: summary.alpha,
    ),
    Column(
        "tau",
        "τ",
        "Tokens per drafted round: 1 + accepted / rounds with a draft. The 1 is the target's own token; a "
        "round in which the answer ends inside the draft has none.",
        lambda summary, _lane: numbers.digits(summary.tau),
        lambda summary, _lane: summary.tau,
    ),
    Column(
        "draft_share",
        "draft share",
        "Accepted / emitted tokens.",
        lambda summary, _lane: numbers.percent(summary.draft_share),
        lambda summary, _lane: summary.draft_share,
    ),
    Column(
        "draft_seconds",
        "draft/token",
        "Time spent drafting / emitted tokens.",
        lambda summary, _lane: numbers.milliseconds(_per_token(summary.draft_seconds, summary)),
        lambda summary, _lane: _per_token(summary.draft_seconds, summary),
    ),
    Column(
        "target_seconds",
        "verify/token",
        "Time of the target's passes / emitted tokens.",
        lambda summary, _lane: numbers.milliseconds(_per_token(summary.target_seconds, summary)),
        lambda summary, _lane: _per_token(summary.target_seconds, summary),
    ),
    Column(
        "first_token_seconds",
        "first token",
        "Median time from the request to the first emitted token.",
        lambda summary, _lane: numbers.milliseconds(middle(summary.first_token_seconds)),
        lambda summary, _lane: middle(summary.first_token_seconds),
    ),
    Column(
        "memory",
        "memory",
        "Weights, caches and buffers of the models that the lane uses.",
        lambda _summary, lane: _memory(lane.memory),
        lambda _summary, lane: lane.memory,
    ),
    Column(
        "equal",
        "same text as baseline",
        "Runs with exactly the baseline's tokens. A near-tie is a difference that rounding explains; a rule "
        "that draws keeps the target's distribution, not the text.",
        lambda summary, _lane: _equal(summary),
        lambda summary, _lane: summary.identical / summary.compared if summary.compared else None,
    ),
    Column(
        "failed",
        "failed",
        "Runs that failed; no other column counts them.",
        lambda summary, _lane: str(summary.failed or numbers.NONE),
        lambda summary, _lane: summary.failed or None,
    ),
)
"""In the order shown, after the lane's name."""
