"""`draftscope compare`: two results of `bench`, lane by lane."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.base import numbers
from app.base.files import DamagedError, decode, read_file, reason
from app.cli.terminal.arguments import Parser
from app.cli.terminal.console import put
from app.cli.terminal.table import definitions, table
from app.engine.errors import UserError
from app.lab.report.change import LaneChange, ReportChange, change_between
from app.lab.report.columns import COLUMNS
from app.lab.report.interval import middle, speedup_words
from app.lab.report.report import FORMAT, Report

PROG = "draftscope compare"
_DESCRIPTION = """\
Compare two results of bench or sweep lane by lane, such as those of two builds or of two machines: the
lanes of the same name, over the prompts that both measured. No model is needed."""
_HEAD = (
    "lane",
    "tokens/s before",
    "after",
    "after / before (95 %)",
    "speed-up before",
    "after",
    "after / before (95 %)",
    "acceptance before",
    "after",
    "same tokens",
)
_SHOWN = ("tokens_per_second", "speedup", "acceptance_rate")
_DEFINITIONS = (
    *definitions(column for column in COLUMNS if column.key in _SHOWN),
    "after / before: of tokens/s, and of speed-ups, of the same prompts: geometric mean over prompts.",
    "same tokens: answers with the same tokens in both.",
)


class _ReportFormat(msgspec.Struct):
    format: str


_version = msgspec.json.Decoder(_ReportFormat)
_report = msgspec.json.Decoder(Report)


def compare(argv: list[str]) -> int:
    """Read both files and print; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} BEFORE.json AFTER.json")
    parser.add_argument("before", metavar="BEFORE.json", type=Path, help="What bench --json wrote")
    parser.add_argument(
        "after", metavar="AFTER.json", type=Path, help="The same, measured later or elsewhere"
    )
    arguments = parser.parse_args(argv)
    change = change_between(read_report(arguments.before), read_report(arguments.after))
    put(_lines(change))
    return 0


def read_report(path: Path) -> Report:
    """Read what `bench --json` wrote; raises UserError."""
    try:
        data = read_file(path)
        version = decode(_version, data).format  # first: another format may have other fields
        if version.split(".")[0] == FORMAT.split(".")[0]:
            return decode(_report, data)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {reason(error)}.") from error
    except DamagedError as error:
        raise UserError(
            f"{path.name} is not a result of bench.", "Give a file that bench or sweep --json wrote."
        ) from error
    raise UserError(f"{path.name} has format {version}; this version reads {FORMAT}.")


def _lines(change: ReportChange) -> list[str]:
    lines = [*table(_HEAD, [_row(lane) for lane in change.lanes]), "", *_DEFINITIONS]
    lines += ["", change.verdict, f"Over {numbers.count(change.prompts, 'prompt')} that both files have."]
    for names, which in ((change.only_before, "before"), (change.only_after, "after")):
        if names:
            lines.append(f"Measured only {which}: {numbers.listed(names)}.")
    if change.differences:
        lines += ["Beside the measurements these differ:", *(f"  {line}" for line in change.differences)]
    return lines


def _row(lane: LaneChange) -> list[str]:
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
