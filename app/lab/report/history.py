"""A history: what was measured of each lane, from result to result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.base import numbers
from app.lab.report.interval import Speedup, middle, speedup_words
from app.lab.report.report import Report
from app.lab.runs.disturbance import disturbances

HEAD = ("measured (UTC)", "Draftscope", "machine", "tokens/s", "speed-up (95 %)")


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A lane of one result."""

    lane: str
    created_at: str  # ISO 8601, UTC
    version: str
    machine: str
    tokens_per_second: float | None  # median
    speed: Speedup | None  # over the baseline of the same result
    doubtful: bool  # something disturbed the measurement

    @property
    def cells(self) -> tuple[str, ...]:
        """The row under HEAD, after the lane, as words."""
        when = self.created_at[:16].replace("T", " ")
        speeds = numbers.digits(self.tokens_per_second), speedup_words(self.speed)
        return when, self.version, self.machine, *speeds, "disturbed" if self.doubtful else ""


@dataclass(frozen=True, slots=True)
class History:
    """The lanes that answered the same prompts with the same target, each from the earliest result on."""

    title: str
    rows: tuple[HistoryRow, ...]

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest factor, with 1 and the intervals between them."""
        known = [row.speed for row in self.rows if row.speed is not None]
        ends = [end for speed in known for end in (speed.factor, speed.low, speed.high) if end is not None]
        return min([1.0, *ends]), max([1.0, *ends])


def histories(reports: Iterable[Report]) -> list[History]:
    """The histories of results in any order; only results of the same target and prompts share one."""
    found: dict[tuple[object, ...], list[HistoryRow]] = {}
    for report in reports:
        target = report.pair.target.file if report.pair else "a server"
        title = f"{target} · {report.title or numbers.count(len(report.prompts), 'prompt')}"
        rows = found.setdefault((title, report.prompts, report.settings.max_tokens), [])
        rows += _rows(report)
    return [
        History(str(title), tuple(sorted(rows, key=lambda row: (row.lane, row.created_at))))
        for (title, *_), rows in sorted(found.items(), key=lambda item: str(item[0][0]))
    ]


def _rows(report: Report) -> Iterable[HistoryRow]:
    """A row for each lane that was measured; a baseline has one where it stands alone."""
    system, doubtful = report.system, bool(disturbances(report))
    baselines = {lane.baseline for lane in report.lanes}
    for summary in report.summary:
        if summary.tokens_per_second is None or (len(report.lanes) > 1 and summary.lane in baselines):
            continue
        yield HistoryRow(
            lane=report.lanes[summary.lane].name,
            created_at=report.created_at,
            version=f"{system.app}, llama-cpp-python {system.llama_cpp_python}",
            machine=f"{system.cpu}, {numbers.count(system.cores, 'core')}"
            + (f"; {system.devices}" if system.devices not in ("", "CPU") else ""),
            tokens_per_second=middle(summary.tokens_per_second),
            speed=summary.speedup if len(report.lanes) > 1 else None,
            doubtful=doubtful,
        )
