"""`draftscope history`: how the lanes of a folder's results changed over time."""

from __future__ import annotations

from pathlib import Path

from app.base import numbers
from app.cli.answer.recorder import check_writable, write_file
from app.cli.measure.compare import read_result
from app.cli.terminal.arguments import Parser
from app.cli.terminal.console import put
from app.cli.terminal.table import table
from app.engine.errors import UserError
from app.lab.report.history import HEAD, History, HistoryRow, histories
from app.lab.report.page.history_page import history_html
from app.lab.report.report import Report

PROG = "draftscope history"
_DESCRIPTION = """\
Show the results of bench and sweep in a folder as a history: each lane's speed-up over none from result to
result, with version and machine. Results of the same target and prompts are grouped."""
_WIDE = 33  # characters of a plot
_DEFINITIONS = (
    "plot: the speed-up ● and its 95 % interval ├ ┤, between the factors above it; ┊ or ┼ is 1×.",
    "disturbed: other programs were busy, the baseline drifted, or runs failed. compare says which.",
)


def history(argv: list[str]) -> int:
    """Read the folder and print; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} FOLDER [--html OUT.html]")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="Where files of bench --json are")
    parser.add_argument(
        "--html", metavar="OUT.html", type=Path, help="Write a page with plots, which opens in any browser"
    )
    arguments = parser.parse_args(argv)
    if arguments.html is not None:
        check_writable(arguments.html)
    reports, others = _read(arguments.folder)
    found = histories(reports)
    for each in found:
        put([*_lines(each), ""])
    put([*_DEFINITIONS, *([f"No results of bench or sweep: {numbers.listed(others)}."] if others else [])])
    if arguments.html is not None:
        write_file(arguments.html, history_html(found).encode())
    return 0


def _read(folder: Path) -> tuple[list[Report], list[str]]:
    """The results in a folder, and the names of its other JSON files. Raises UserError without any result."""
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder.", "Give one that holds files of bench --json.")
    reports, others = [], []
    for path in sorted(folder.glob("*.json")):
        if not path.is_file():
            continue
        try:
            result = read_result(path)
        except UserError:  # a folder may hold other files, which are named
            result = None
        if isinstance(result, Report):
            reports.append(result)
        else:
            others.append(path.name)
    if not reports:
        raise UserError(f"{folder} has no result of bench.", "Write some into it with bench --json.")
    return reports, others


def _lines(history: History) -> list[str]:
    low, high = history.reach
    scale = f"{numbers.factor(low)} {numbers.factor(high):>{_WIDE - len(numbers.factor(low)) - 1}}"
    rows = [[row.lane, *row.cells[:-1], _plot(row, low, high), row.cells[-1]] for row in history.rows]
    return [history.title, *table(["lane", *HEAD, scale, ""], rows, right=HEAD[-2:])]


def _plot(row: HistoryRow, low: float, high: float) -> str:
    """A factor and its interval between `low` and `high`, as characters."""
    if row.speed is None:
        return ""
    marks = [" "] * _WIDE

    def place(value: float) -> int:
        return round((value - low) / (high - low) * (_WIDE - 1)) if high > low else 0

    marks[place(1.0)] = "┊"
    if row.speed.low is not None and row.speed.high is not None:
        first, last = place(row.speed.low), place(row.speed.high)
        marks[first : last + 1] = "─" * (last - first + 1)
        marks[first], marks[last] = "├", "┤"
        if first < place(1.0) < last:
            marks[place(1.0)] = "┼"
    marks[place(row.speed.factor)] = "●"
    return "".join(marks).rstrip()
