"""The columns of all tables of measurements: their values, texts and definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.base import numbers
from app.engine.record.stats import strategy_names
from app.lab.report.report import Report, ReportLane
from app.lab.report.summary import Summary, middle, speedup_words
from app.lab.runs.record import FIRST_TOKEN, FIRST_TOKEN_TITLE, INTER_TOKEN, INTER_TOKEN_TITLE

RowT = TypeVar("RowT")
Row = tuple[Summary, ReportLane]


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """A number of each row: rows are sorted by `value`; `written` is its text."""

    key: str
    title: str
    definition: str
    value: Callable[[RowT], float | None]
    written: Callable[[Any], str] = numbers.digits
    words: Callable[[RowT], str] | None = None
    """The text, if the column shows more than its value."""
    shares: Callable[[RowT], Sequence[float | None]] | None = None
    """The shares in the text, if the column can be a small plot."""

    def text(self, row: RowT) -> str:
        return self.written(self.value(row)) if self.words is None else self.words(row)


@dataclass(frozen=True, slots=True)
class Shown(Generic[RowT]):
    """How a column reads and writes a row. Without a `value` it reads the attribute that has its key."""

    value: Callable[[RowT], float | None] | None = None
    written: Callable[[Any], str] = numbers.digits
    words: Callable[[RowT], str] | None = None
    shares: Callable[[RowT], Sequence[float | None]] | None = None


def columns_of(
    text: str, owner: Callable[[RowT], object] = lambda row: row, **shown: Shown[RowT]
) -> tuple[Column[RowT], ...]:
    """The columns that a text describes: a line for each with its key, title and definition, two spaces
    between them. Indented lines continue a definition. `owner` gets the object of a row with the attributes.
    """

    def column(line: str) -> Column[RowT]:
        key, title, definition = re.sub(r"\n +", " ", line).split("  ")
        how = shown.pop(key, Shown())
        value = how.value or (lambda row: getattr(owner(row), key))
        return Column(key, title, definition, value, how.written, how.words, how.shares)

    found = tuple(map(column, re.split(r"\n(?=\S)", text.strip())))
    assert not shown, shown
    return found


def _summary(row: Row) -> Summary:
    return row[0]


def _per_token(amount: float | None, row: Row) -> float | None:
    return amount / row[0].n_tokens if row[0].n_tokens and amount is not None else None


def _equal(row: Row) -> str:
    summary, _lane = row
    if summary.equal is None:
        return numbers.NONE
    if summary.identical == summary.compared:
        return "identical"
    if summary.equal:
        return numbers.count(summary.near_ties, "tie")
    return f"{summary.identical} of {summary.compared}"


_MOST_PLACES = 6  # of a list of shares that a cell shows


def _shares(shares: Sequence[float | None]) -> str:
    """Shares as whole percent, "91 · 84 · 70 %"; the first _MOST_PLACES of them."""
    if not shares:
        return numbers.NONE
    shown = [numbers.NONE if share is None else f"{share * 100:.0f}" for share in shares[:_MOST_PLACES]]
    more = " · …" if len(shares) > _MOST_PLACES else ""
    return f"{' · '.join(shown)}{more}\N{NO-BREAK SPACE}%"


def _parts(row: Row) -> str:
    summary, _lane = row
    shares = (
        f"{name} {numbers.percent(share.accepted / summary.n_tokens if summary.n_tokens else None, 0)}"
        for name, share in summary.strategies.items()
    )
    return ", ".join(shares) or numbers.NONE


def _shares_of(shares: Callable[[Summary], Sequence[float | None]]) -> Shown[Row]:
    """A list of shares; rows are sorted by the first."""
    return Shown(
        lambda row: next(iter(shares(row[0])), None),
        words=lambda row: _shares(shares(row[0])),
        shares=lambda row: shares(row[0]),
    )


COLUMNS: tuple[Column[Row], ...] = columns_of(
    f"""
tokens_per_second  tokens/s  Median over runs of emitted tokens / wall time from the start of the first round.
speedup  speed-up (95 %)  tokens/s divided by tokens/s of strategy none on the same target, prompt and repeat:
    geometric mean over prompts. The interval estimates it for similar prompts, measured again.
whole_speedup  end to end  Speed-up including the time to read the prompt: from the request to the last token.
acceptance_rate  acceptance  Accepted / drafted tokens, pooled over all runs.
alpha  judged α  Accepted / (accepted + rejected): the chance that a judged draft token is accepted.
tau  τ  Tokens per drafted round: 1 + accepted / rounds with a draft. The 1 is the target's own token. A round
    has none if the answer ends inside its draft.
draft_share  draft share  Accepted / emitted tokens.
draft_seconds  draft/token  Time spent drafting / emitted tokens.
target_seconds  verify/token  Time of the target's passes / emitted tokens.
first_token_seconds  {FIRST_TOKEN_TITLE}  {FIRST_TOKEN}
inter_token  {INTER_TOKEN_TITLE}  {INTER_TOKEN}
memory  memory  Memory for weights, caches and buffers of the lane's models.
joules_per_token  J/token  Energy from the request to the end / emitted tokens, as the system counts it: whole
    processor packages (RAPL) and whole cards (NVML), including other programs.
equal  same text as baseline  Runs with exactly the baseline's tokens. A tie is a difference that rounding
    explains. A rule that samples keeps the target's distribution, not the text.
failed  failed  Runs that failed. No other column includes them.
""",
    _summary,
    tokens_per_second=Shown(lambda row: middle(row[0].tokens_per_second)),
    speedup=Shown(
        lambda row: row[0].speedup.factor if row[0].speedup else None,
        words=lambda row: speedup_words(row[0].speedup),
    ),
    whole_speedup=Shown(written=numbers.factor),
    acceptance_rate=Shown(written=numbers.percent),
    draft_share=Shown(written=numbers.percent),
    draft_seconds=Shown(
        # None for a strategy that never drafts.
        lambda row: _per_token(row[0].draft_seconds, row) if strategy_names(row[0].strategy) else None,
        numbers.milliseconds,
    ),
    target_seconds=Shown(lambda row: _per_token(row[0].target_seconds, row), numbers.milliseconds),
    first_token_seconds=Shown(lambda row: row[0].first_token_p50, words=lambda row: row[0].first_token_words),
    inter_token=Shown(lambda row: row[0].inter_token_p95, words=lambda row: row[0].inter_token_words),
    memory=Shown(
        lambda row: row[1].memory,
        lambda size: numbers.NONE if size is None else f"{numbers.digits(size / 1e6)} MB",
    ),
    joules_per_token=Shown(lambda row: _per_token(row[0].joules, row)),
    equal=Shown(lambda row: row[0].identical / row[0].compared if row[0].compared else None, words=_equal),
    failed=Shown(lambda row: row[0].failed or None, lambda failed: str(failed or numbers.NONE)),
)
"""In the order shown, after the lane's name."""

SHAPE: tuple[Column[Row], ...] = columns_of(
    """
tokens_per_pass  tokens/pass  Emitted tokens / rounds. Every round is one pass of the target.
draft_length  draft length  Drafted tokens / rounds with a draft.
acc_per_pos  acc per pos  Acceptance per position, as llama.cpp and vLLM report it: rounds accepted at
    position 1, 2, 3, … / all rounds with a draft.
acceptance_by_place  of drafted there  Accepted / drafted at position 1, 2, 3, … of a draft. Drafts that ended
    before the position do not count.
judged_acceptance_by_place  of judged there  Accepted / (accepted + rejected) at position 1, 2, 3, … of a
    draft. Not defined for block verification.
accepted_per_round  rounds with 0, 1, … accepted  Shares of the rounds with a draft in which 0, 1, 2, … tokens
    were accepted.
ranks  choice 1, 2, … of the draft  How often the emitted token was the draft model's first, second, third, …
    choice at its position. Ten choices are recorded. A wider draft could gain the share after the first.
    Exact for greedy and match; an estimate if tokens are drawn from the residual.
target_entropy  entropy of the target  Mean of −Σ p log2 p in bits over the target's recorded best tokens, at
    most ten. All others count as one, so it is a lower bound. At temperature 0 it is the entropy of the
    model's distribution at temperature 1.
strategies  share of each strategy  Share of the emitted tokens that each strategy of a mix drafted and the
    target accepted.
""",
    _summary,
    acc_per_pos=_shares_of(lambda summary: summary.acc_per_pos),
    acceptance_by_place=_shares_of(lambda summary: summary.acceptance_by_place),
    judged_acceptance_by_place=_shares_of(lambda summary: summary.judged_acceptance_by_place),
    accepted_per_round=_shares_of(
        lambda summary: [each / sum(summary.accepted_per_round) for each in summary.accepted_per_round]
    ),
    ranks=_shares_of(
        lambda summary: [places / summary.alternatives.ranked for places in summary.alternatives.ranks]
    ),
    target_entropy=Shown(
        lambda row: row[0].alternatives.target_entropy, lambda bits: numbers.digits(bits, "bit")
    ),
    strategies=Shown(lambda row: row[0].draft_share if len(row[0].strategies) > 1 else None, words=_parts),
)
"""The columns of a second table, about drafts. In the order shown, after the lane's name."""


def lane_rows(report: Report) -> list[Row]:
    return list(zip(report.summary, report.lanes, strict=True))


def filled_columns(columns: Sequence[Column[RowT]], rows: Sequence[RowT]) -> list[Column[RowT]]:
    """The columns that have a value in at least one row."""
    return [column for column in columns if any(column.value(row) is not None for row in rows)]


def lane_cells(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[list[str]]:
    """A row of texts for each lane: its name, then the columns."""
    return [[row[1].name, *(column.text(row) for column in columns)] for row in rows]


def category_rows(report: Report) -> Iterator[tuple[str, list[Summary]]]:
    """For each lane: its name, and its summary in each category."""
    found = {(summary.lane, summary.category): summary for summary in report.by_category}
    for index, lane in enumerate(report.lanes):
        yield lane.name, [found[index, name] for name in report.categories]


def category_cells(report: Report) -> list[list[str]]:
    """A row for each lane: its name, then speed-up and acceptance in each category."""
    return [[name, *map(_category_cell, summaries)] for name, summaries in category_rows(report)]


def _category_cell(summary: Summary) -> str:
    factor = numbers.factor(summary.speedup.factor if summary.speedup else None)
    if summary.acceptance_rate is None:
        return factor
    return f"{factor} {numbers.percent(summary.acceptance_rate, 0)}"


CATEGORIES = "Speed-up by category, and acceptance rate if something was drafted."
