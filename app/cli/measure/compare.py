"""`draftscope compare` and `draftscope history`: results of `bench`, lane by lane, and version by version."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.base import numbers
from app.base.files import DamagedError, decode, explained, read_file
from app.cli.answer.recorder import check_writable, write_file
from app.cli.terminal.arguments import Parser, add_options, positive
from app.cli.terminal.console import complain, definitions, put, table
from app.engine.errors import UserError
from app.lab.load.export import LOAD_COLUMNS, load_change_between
from app.lab.load.report import FORMAT as LOAD_FORMAT
from app.lab.load.report import BurstReport, LoadRow
from app.lab.report import change as changes
from app.lab.report.columns import COLUMNS
from app.lab.report.report import FORMAT, Report
from app.lab.report.summary import Summary, middle, speedup_words

PROG = "draftscope compare"
SLOWER = 3
"""The exit code if a lane is shown to be slower than allowed."""
_DESCRIPTION = """\
Compare two results of bench or sweep lane by lane, such as two builds or two machines. Lanes are matched by
name and compared over the prompts that both measured. Results of bench --load and --request-rate are compared
at each load. No model is needed."""
_OPTIONS = f"""
before BEFORE.json  A result of bench --json
after AFTER.json  The same, measured later or elsewhere
--fail-below X  Exit with {SLOWER} if a lane's after / before of tokens/s and its interval are below X, such
    as 0.97. Exit with 1 if a lane has too few prompts and repeats for an interval
"""
_HEAD = (
    "lane", "tokens/s before", "after", "after / before (95 %)", "speed-up before", "after",
    "after / before (95 %)", "acceptance before", "after", "same tokens",
)  # fmt: skip
_SHOWN = ("tokens_per_second", "speedup", "acceptance_rate")
_DEFINITIONS = (
    *definitions(column for column in COLUMNS if column.key in _SHOWN),
    "after / before: ratio of tokens/s, and of speed-ups, on the same prompts: geometric mean over prompts.",
    "same tokens: answers with the same tokens in both.",
)
_LOAD_HEAD = ("lane", "total tokens/s", "after", "after / before (95 %)", "first token", "after")
_LOAD_DEFINITIONS = (
    *definitions(column for column in LOAD_COLUMNS if column.title.startswith(("total tokens/s", "first"))),
    "after / before: ratio of total tokens/s in the same repeat. At a rate, it is the ratio of each "
    "request's tokens / time. Geometric mean and interval over repeats.",
)


class _ReportFormat(msgspec.Struct):
    format: str


_version = msgspec.json.Decoder(_ReportFormat)
_report = msgspec.json.Decoder(Report)
_load = msgspec.json.Decoder(BurstReport)


def compare(argv: list[str]) -> int:
    """Read both files and print; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} BEFORE.json AFTER.json [--fail-below X]")
    factor = positive("Allowed: a factor above 0, such as 0.97.")
    add_options(parser, _OPTIONS, Path, fail_below=factor)
    arguments = parser.parse_args(argv)
    before, after = read_result(arguments.before), read_result(arguments.after)
    if isinstance(before, Report) and isinstance(after, Report):
        change = changes.change_between(before, after)
        put([*table(_HEAD, [_row(lane) for lane in change.lanes]), "", *_DEFINITIONS, *_lines(change)])
        return _gate(change, arguments.fail_below)
    if isinstance(before, BurstReport) and isinstance(after, BurstReport):
        load = load_change_between(before, after)
        rows = [_load_row(lane) for lane in load.lanes]
        put([*table(_LOAD_HEAD, rows), "", *_LOAD_DEFINITIONS, *_lines(load)])
        return _gate(load, arguments.fail_below)
    raise UserError("One file is a result of bench --load, and the other is not.", "Compare two of a kind.")


def read_result(path: Path) -> Report | BurstReport:
    """Read what `bench --json` or `bench --load --json` wrote; raises UserError."""
    with explained(f"{path} cannot be read"):
        data = read_file(path)
    try:
        version = decode(_version, data).format  # first: another format may have other fields
        if version.split(".")[0] == FORMAT.split(".")[0]:
            return decode(_report, data)
        if version.split(".")[0] == LOAD_FORMAT.split(".")[0]:
            return decode(_load, data)
    except DamagedError as error:
        raise UserError(
            f"{path.name} is not a result of bench.", "Give a file that bench or sweep --json wrote."
        ) from error
    raise UserError(f"{path.name} has format {version}; this version reads {FORMAT} and {LOAD_FORMAT}.")


def _gate(change: changes.ReportChange[changes.RowT], least: float | None) -> int:
    """The exit code of --fail-below. Raises UserError if a lane cannot be judged."""
    if least is None:
        return 0
    slower, unsure = [], []
    for lane in change.lanes:
        if lane.speed is None or lane.speed.high is None:
            unsure.append(lane.name)
        elif lane.speed.high < least:
            slower.append(f"{lane.name} {speedup_words(lane.speed)}")
    if slower:
        complain(PROG, f"Below {least:g} of the tokens/s before: {numbers.listed(slower)}.")
        return SLOWER
    if unsure:
        raise UserError(
            f"Too few prompts and repeats for an interval of {numbers.listed(unsure)}.",
            "Measure three prompts or three repeats with both.",
        )
    return 0


def _lines(change: changes.ReportChange[changes.RowT]) -> list[str]:
    lines = ["", change.verdict, f"Over {numbers.count(change.prompts, 'prompt')} that both files have."]
    for names, which in ((change.only_before, "before"), (change.only_after, "after")):
        if names:
            lines.append(f"Measured only {which}: {numbers.listed(names)}.")
    if change.differences:
        lines += ["Other differences:", *(f"  {line}" for line in change.differences)]
    return [*lines, *change.doubts]


def _load_row(level: changes.Change[LoadRow]) -> list[str]:
    speeds = level.before.speed_words, level.after.speed_words, speedup_words(level.speed)
    return [level.name, *speeds, level.before.first_token_words, level.after.first_token_words]


def _row(lane: changes.Change[Summary]) -> list[str]:
    before, after = lane.before, lane.after
    same = f"{lane.same_tokens} of {lane.compared}" if lane.compared else numbers.NONE
    return [
        lane.name,
        numbers.digits(middle(before.tokens_per_second)),
        numbers.digits(middle(after.tokens_per_second)),
        speedup_words(lane.speed),
        numbers.factor(before.speedup.factor if before.speedup else None),
        numbers.factor(after.speedup.factor if after.speedup else None),
        speedup_words(lane.gain),
        numbers.percent(before.acceptance_rate),
        numbers.percent(after.acceptance_rate),
        same,
    ]


HISTORY = "draftscope history"
_OF_HISTORY = """\
Show the results of bench and sweep in a folder as a history: each lane's speed-up over none, with version and
machine. Results of the same target and prompts are grouped."""
_FOLDER = """
folder FOLDER  Where files of bench --json are
--html OUT.html  Write a page with plots, which opens in any browser
"""
_WIDE = 33  # characters of a plot
_HISTORY_DEFINITIONS = (
    "plot: the speed-up ● and its 95 % interval ├ ┤, between the factors above it; ┊ or ┼ is 1×.",
    "disturbed: other programs were busy, the baseline drifted, or runs failed. compare says which.",
)


def history(argv: list[str]) -> int:
    """Read the folder and print; returns the exit code. Raises UserError."""
    parser = Parser(HISTORY, _OF_HISTORY, f"{HISTORY} FOLDER [--html OUT.html]")
    add_options(parser, _FOLDER, Path)
    arguments = parser.parse_args(argv)
    if arguments.html is not None:
        check_writable(arguments.html)
    reports, others = _read(arguments.folder)
    found = changes.histories(reports)
    for each in found:
        put([*_history_lines(each), ""])
    put(
        [
            *_HISTORY_DEFINITIONS,
            *([f"No results of bench or sweep: {numbers.listed(others)}."] if others else []),
        ]
    )
    if arguments.html is not None:
        write_file(arguments.html, changes.history_html(found).encode())
    return 0


def _read(folder: Path) -> tuple[list[Report], list[str]]:
    """The results in a folder, and the names of its other JSON files. Raises UserError without any result."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder.", "Give one that contains files of bench --json.")
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


def _history_lines(history: changes.History) -> list[str]:
    low, high = history.reach
    scale = f"{numbers.factor(low)} {numbers.factor(high):>{_WIDE - len(numbers.factor(low)) - 1}}"
    rows = [[row.lane, *row.cells[:-1], _plot(row, low, high), row.cells[-1]] for row in history.rows]
    return [history.title, *table(["lane", *changes.HEAD, scale, ""], rows, right=changes.HEAD[-2:])]


def _plot(row: changes.HistoryRow, low: float, high: float) -> str:
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
