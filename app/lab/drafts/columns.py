"""The columns of a table of drafts, with their definitions: the same in window and command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.base import numbers
from app.lab.drafts.trials import DraftScore


@dataclass(frozen=True, slots=True)
class DraftColumn:
    """A number of a draft: its title, its definition, its text."""

    title: str
    definition: str
    text: Callable[[DraftScore], str]


def _with_interval(value: float | None, low: float | None, high: float | None, unit: str = "") -> str:
    if value is None:
        return numbers.NONE
    within = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{value:.2f}{unit}{within}"


SIZE_COLUMNS = (
    DraftColumn("size", "All of its files.", lambda score: numbers.file_size(score.size)),
    DraftColumn("of target", "Its size / the target's.", lambda score: numbers.percent(score.share, 0)),
)
MEASURED_COLUMNS = (
    DraftColumn(
        "α (95 %)",
        "The mean over the places of the target's own answers of Σ min(p, q): the chance that a drawn draft "
        "token passes; at temperature 0 the share of places with the same most probable token. The interval "
        "is over the answers and needs three.",
        lambda score: _with_interval(score.alpha, score.alpha_low, score.alpha_high),
    ),
    DraftColumn(
        "same best",
        "Greedy agreement: the share of places where both models have the same most probable token.",
        lambda score: numbers.percent(score.agreement),
    ),
    DraftColumn(
        "c",
        "The time of a draft token relative to a target pass over one token, both measured.",
        lambda score: numbers.digits(score.c),
    ),
    DraftColumn(
        "n_max",
        "The draft length with the largest predicted factor.",
        lambda score: numbers.NONE if score.n_max is None else str(score.n_max),
    ),
    DraftColumn(
        "predicted (95 %)",
        "The speed-up predicted at that draft length: (1 + α + … + α^k) / (v(k) + k c), with v(k) the time "
        "of a target pass over k + 1 tokens, also measured. The interval is that of α.",
        lambda score: _with_interval(score.factor, score.factor_low, score.factor_high, "×"),
    ),
)
DRAFT_COLUMNS = SIZE_COLUMNS + MEASURED_COLUMNS
