"""The columns of the table: their values, texts and definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.base import numbers
from app.engine.record.stats import strategy_names
from app.lab.report.report import Report, ReportLane
from app.lab.report.summary import Summary, middle, speedup_words
from app.lab.runs.record import FIRST_TOKEN, FIRST_TOKEN_TITLE, INTER_TOKEN, INTER_TOKEN_TITLE


@dataclass(frozen=True, slots=True)
class Column:
    """One column; rows are sorted by `value`."""

    key: str
    title: str
    definition: str
    text: Callable[[Summary, ReportLane], str]
    value: Callable[[Summary, ReportLane], float | None]
    shares: Callable[[Summary], Sequence[float | None]] | None = None
    """What `text` lists, of a column that is a small plot where plots can be."""


def _memory(size: int | None) -> str:
    return numbers.NONE if size is None else f"{numbers.digits(size / 1e6)} MB"


def _drafting(summary: Summary) -> float | None:
    """Drafting seconds per emitted token; None for a strategy that never drafts."""
    drafts = strategy_names(summary.strategy)
    return _per_token(summary.draft_seconds, summary) if drafts else None


def _per_token(seconds: float | None, summary: Summary) -> float | None:
    return seconds / summary.n_tokens if summary.n_tokens and seconds is not None else None


def _joules(summary: Summary) -> float | None:
    """Joules per emitted token."""
    return None if summary.joules is None else _per_token(summary.joules, summary)


def _equal(summary: Summary) -> str:
    if summary.equal is None:
        return numbers.NONE
    if summary.identical == summary.compared:
        return "identical"
    if summary.equal:
        return f"{summary.near_ties} near-tie{'' if summary.near_ties == 1 else 's'}"
    return f"{summary.identical} of {summary.compared}"


_MOST_PLACES = 6  # of a list of shares that a cell shows


def _shares(shares: Sequence[float | None]) -> str:
    """Shares as whole percent, "91 · 84 · 70 %"; the first _MOST_PLACES of them."""
    if not shares:
        return numbers.NONE
    shown = [numbers.NONE if share is None else f"{share * 100:.0f}" for share in shares[:_MOST_PLACES]]
    more = " · …" if len(shares) > _MOST_PLACES else ""
    return f"{' · '.join(shown)}{more}\N{NO-BREAK SPACE}%"


def _first(shares: Sequence[float | None]) -> float | None:
    return shares[0] if shares else None


def _per_round(summary: Summary) -> list[float]:
    rounds = sum(summary.accepted_per_round)
    return [each / rounds for each in summary.accepted_per_round]


def _ranks(summary: Summary) -> list[float]:
    """The share of each choice of the draft."""
    return [places / summary.alternatives.ranked for places in summary.alternatives.ranks]


def _parts(summary: Summary) -> str:
    shares = (
        f"{name} {numbers.percent(share.accepted / summary.n_tokens if summary.n_tokens else None, 0)}"
        for name, share in summary.strategies.items()
    )
    return ", ".join(shares) or numbers.NONE


def _shares_column(
    key: str, title: str, definition: str, shares: Callable[[Summary], Sequence[float | None]]
) -> Column:
    return Column(
        key,
        title,
        definition,
        lambda summary, _lane: _shares(shares(summary)),
        lambda summary, _lane: _first(shares(summary)),
        shares,
    )


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
        lambda summary, _lane: numbers.milliseconds(_drafting(summary)),
        lambda summary, _lane: _drafting(summary),
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
        FIRST_TOKEN_TITLE,
        FIRST_TOKEN,
        lambda summary, _lane: summary.first_token_words,
        lambda summary, _lane: summary.first_token_p50,
    ),
    Column(
        "inter_token",
        INTER_TOKEN_TITLE,
        INTER_TOKEN,
        lambda summary, _lane: summary.inter_token_words,
        lambda summary, _lane: summary.inter_token_p95,
    ),
    Column(
        "memory",
        "memory",
        "Weights, caches and buffers of the models that the lane uses.",
        lambda _summary, lane: _memory(lane.memory),
        lambda _summary, lane: lane.memory,
    ),
    Column(
        "joules_per_token",
        "J/token",
        "Energy from the request to the end / emitted tokens, as the system counts it: whole processor "
        "packages (RAPL) and whole cards (NVML), with whatever else ran there.",
        lambda summary, _lane: numbers.digits(_joules(summary)),
        lambda summary, _lane: _joules(summary),
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

SHAPE = (
    Column(
        "tokens_per_pass",
        "tokens/pass",
        "Emitted tokens / rounds. Every round is one pass of the target.",
        lambda summary, _lane: numbers.digits(summary.tokens_per_pass),
        lambda summary, _lane: summary.tokens_per_pass,
    ),
    Column(
        "draft_length",
        "draft length",
        "Drafted tokens / rounds with a draft.",
        lambda summary, _lane: numbers.digits(summary.draft_length),
        lambda summary, _lane: summary.draft_length,
    ),
    _shares_column(
        "acc_per_pos",
        "acc per pos",
        "llama.cpp's and vLLM's: at place 1, 2, 3, … of a draft, the rounds whose draft was accepted there / "
        "all rounds with a draft.",
        lambda summary: summary.acc_per_pos,
    ),
    _shares_column(
        "acceptance_by_place",
        "of drafted there",
        "At place 1, 2, 3, … of a draft: accepted / drafted there. Shorter drafts do not count.",
        lambda summary: summary.acceptance_by_place,
    ),
    _shares_column(
        "judged_acceptance_by_place",
        "of judged there",
        "At place 1, 2, 3, … of a draft: accepted / (accepted + rejected) there. Not defined for block "
        "verification.",
        lambda summary: summary.judged_acceptance_by_place,
    ),
    _shares_column(
        "accepted_per_round",
        "rounds with 0, 1, … accepted",
        "Of the rounds with a draft, the shares of which 0, 1, 2, … tokens were accepted.",
        _per_round,
    ),
    _shares_column(
        "ranks",
        "choice 1, 2, … of the draft",
        "How often the emitted token was the draft model's first, second, third, … choice at its place; ten "
        "choices are recorded. A wider draft could win what stands behind the first. Exact for greedy and "
        "match; where a token is drawn from the residual, an estimate.",
        _ranks,
    ),
    Column(
        "target_entropy",
        "entropy of the target",
        "Mean of -Σ p log2 p in bits over the target's recorded best tokens, at most ten, all others counted "
        "as one: a lower bound. At temperature 0 that of the model's own distribution, at temperature 1.",
        lambda summary, _lane: numbers.digits(summary.alternatives.target_entropy, "bit"),
        lambda summary, _lane: summary.alternatives.target_entropy,
    ),
    Column(
        "strategies",
        "share of each strategy",
        "Of all emitted tokens, those that each strategy of a mix drafted and the target accepted.",
        lambda summary, _lane: _parts(summary),
        lambda summary, _lane: summary.draft_share if len(summary.strategies) > 1 else None,
    ),
)
"""The columns of a second table: how drafts fared. In the order shown, after the lane's name."""


Row = tuple[Summary, ReportLane]


def filled_columns(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """The columns that have a value in at least one row."""
    return [column for column in columns if any(column.value(*row) is not None for row in rows)]


def category_cells(report: Report) -> list[list[str]]:
    """A row for each lane: its name, then speed-up and acceptance in each category."""
    found = {(summary.lane, summary.category): summary for summary in report.by_category}
    return [
        [lane.name, *(_category_cell(found[index, name]) for name in report.categories)]
        for index, lane in enumerate(report.lanes)
    ]


def _category_cell(summary: Summary) -> str:
    factor = numbers.factor(summary.speedup.factor if summary.speedup else None)
    if summary.acceptance_rate is None:
        return factor
    return f"{factor} {numbers.percent(summary.acceptance_rate, 0)}"


CATEGORIES = "Speed-up by category, and acceptance rate where something was drafted."
