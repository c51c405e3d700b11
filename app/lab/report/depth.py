"""How the numbers change with the length of the context: curves, rows for tables, why some have none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.base import numbers
from app.lab.report.curves import CurvePlot, Curves, values_of
from app.lab.report.interval import middle, speedup_words
from app.lab.report.report import Report, depths_of

DEFINITION = (
    "Depth is the number of a document's tokens before the question; prompt is the median of all that was "
    "read. Tokens/s are emitted tokens / wall time from the start of round 0; speed-up is that over none at "
    "the same depth, end to end with reading the prompt; acceptance is accepted / drafted tokens; first "
    "token is the median time from the request."
)
HEAD = ("lane", "depth", "prompt", "tokens/s", "speed-up (95 %)", "end to end", "acceptance", "first token")


def depth_curves(report: Report) -> Curves | None:
    """Speed-up, acceptance and first-token time against the depth; None without depths."""
    depths = depths_of(report.prompts)
    if not depths:
        return None
    rows = report.by_depth
    factors = ((row.lane, row.depth, row.speedup.factor if row.speedup else None) for row in rows)
    acceptance = values_of(depths, ((row.lane, row.depth, row.acceptance_rate) for row in rows))
    first_token = values_of(depths, ((row.lane, row.depth, middle(row.first_token_seconds)) for row in rows))
    return Curves(
        axis="depth",
        places=depths,
        lanes=tuple(lane.name for lane in report.lanes),
        baselines=frozenset(lane for lane, facts in enumerate(report.lanes) if facts.baseline == lane),
        plots=(
            CurvePlot("speedup", "speed-up", numbers.factor, values_of(depths, factors)),
            CurvePlot("acceptance_rate", "acceptance", numbers.percent, acceptance),
            CurvePlot("first_token_seconds", "first token", numbers.milliseconds, first_token),
        ),
    )


def depth_rows(report: Report) -> Iterator[list[str]]:
    """A row for each lane and depth, lane by lane; one without measured runs has dashes."""
    for row in sorted(report.by_depth, key=lambda row: row.lane):
        assert row.depth is not None
        yield [
            report.lanes[row.lane].name,
            f"{row.depth:,}",
            numbers.digits(middle(row.prompt_tokens)),
            numbers.digits(middle(row.tokens_per_second)),
            speedup_words(row.speedup),
            numbers.factor(row.whole_speedup),
            numbers.percent(row.acceptance_rate),
            numbers.milliseconds(middle(row.first_token_seconds)),
        ]


def depths_left_out(report: Report) -> list[str]:
    """A line for each depth that could not be measured, with the reason."""
    found: dict[str, Sequence[str]] = {}
    for row in report.by_depth:
        if row.failure and not row.runs:
            found.setdefault(f"left out, depth {row.depth:,}: {row.failure}", ())
    return list(found)
