"""The columns of the table: what each shows, how it is written, what it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.base import numbers
from app.lab.report.interval import middle, speedup_words
from app.lab.report.report import ReportLane
from app.lab.report.summary import Summary


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `value` is what it is sorted by."""

    key: str
    title: str
    definition: str
    text: Callable[[Summary, ReportLane], str]
    value: Callable[[Summary, ReportLane], float | None]


def _memory(size: int | None) -> str:
    return numbers.NONE if size is None else f"{numbers.digits(size / 1e6)} MB"


def _per_token(seconds: float, one: Summary) -> float | None:
    return seconds / one.n_tokens if one.n_tokens else None


def _equal(one: Summary) -> str:
    if one.equal is None:
        return numbers.NONE
    if one.identical == one.compared:
        return "identical"
    if one.equal:
        return f"{one.near_ties} near-tie{'' if one.near_ties == 1 else 's'}"
    return f"{one.identical} of {one.compared}"


COLUMNS = (
    Column(
        "tokens_per_second",
        "tokens/s",
        "Median over runs of emitted tokens / wall time from the start of round 0.",
        lambda one, _lane: numbers.digits(middle(one.tokens_per_second)),
        lambda one, _lane: middle(one.tokens_per_second),
    ),
    Column(
        "speedup",
        "speed-up (95 %)",
        "tokens/s over that of strategy none on the same target, prompt and repeat: geometric mean over "
        "prompts. The interval is where it would lie for other prompts like these at another time.",
        lambda one, _lane: speedup_words(one.speedup),
        lambda one, _lane: one.speedup.factor if one.speedup else None,
    ),
    Column(
        "whole_speedup",
        "end to end",
        "The same with reading the prompt: from the request to the last token.",
        lambda one, _lane: numbers.factor(one.whole_speedup),
        lambda one, _lane: one.whole_speedup,
    ),
    Column(
        "acceptance_rate",
        "acceptance",
        "Accepted / drafted tokens, pooled over all runs.",
        lambda one, _lane: numbers.percent(one.acceptance_rate),
        lambda one, _lane: one.acceptance_rate,
    ),
    Column(
        "alpha",
        "judged α",
        "Accepted / (accepted + rejected): the chance that a judged draft token passes.",
        lambda one, _lane: numbers.digits(one.alpha),
        lambda one, _lane: one.alpha,
    ),
    Column(
        "tau",
        "τ",
        "Tokens per drafted round: 1 + accepted / rounds with a draft. The 1 is the target's own token; a "
        "round in which the answer ends inside the draft has none.",
        lambda one, _lane: numbers.digits(one.tau),
        lambda one, _lane: one.tau,
    ),
    Column(
        "draft_share",
        "draft share",
        "Accepted / emitted tokens.",
        lambda one, _lane: numbers.percent(one.draft_share),
        lambda one, _lane: one.draft_share,
    ),
    Column(
        "draft_seconds",
        "draft/token",
        "Time spent drafting / emitted tokens.",
        lambda one, _lane: numbers.milliseconds(_per_token(one.draft_seconds, one)),
        lambda one, _lane: _per_token(one.draft_seconds, one),
    ),
    Column(
        "target_seconds",
        "verify/token",
        "Time of the target's passes / emitted tokens.",
        lambda one, _lane: numbers.milliseconds(_per_token(one.target_seconds, one)),
        lambda one, _lane: _per_token(one.target_seconds, one),
    ),
    Column(
        "first_token_seconds",
        "first token",
        "Median time from the request to the first emitted token.",
        lambda one, _lane: numbers.milliseconds(middle(one.first_token_seconds)),
        lambda one, _lane: middle(one.first_token_seconds),
    ),
    Column(
        "memory",
        "memory",
        "Weights, caches and buffers of the models that the lane uses.",
        lambda _one, lane: _memory(lane.memory),
        lambda _one, lane: lane.memory,
    ),
    Column(
        "equal",
        "same text as baseline",
        "Runs with exactly the baseline's tokens. A near-tie is a difference that rounding explains; a rule "
        "that draws keeps the target's distribution, not the text.",
        lambda one, _lane: _equal(one),
        lambda one, _lane: one.identical / one.compared if one.compared else None,
    ),
    Column(
        "failed",
        "failed",
        "Runs that could not be done: no other column counts them.",
        lambda one, _lane: str(one.failed or numbers.NONE),
        lambda one, _lane: one.failed or None,
    ),
)
"""In the order in which they are shown; the lane's name stands before them."""
