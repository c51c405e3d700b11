"""The runs as CSV, a line for each run, for spreadsheets."""

from __future__ import annotations

import csv
import io

from app.lab.report.report import Report
from app.lab.runs.run_record import RunRecord

_LEFT_OUT = {
    "token_ids", "text", "first_divergence", "acceptance_by_place", "judged_acceptance_by_place",
    "accepted_per_round", "lengths", "rejections", "strategies", "alternatives",
}  # fmt: skip
"""Fields that are no single number or too long for a cell; they are in the JSON."""
_OPENS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_table(report: Report) -> str:
    """A line for each run, the lane's name first; lists and texts are in the JSON only."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = [name for name in RunRecord.__struct_fields__ if name not in _LEFT_OUT]
    writer.writerow(["name", *fields, "divergence_index", "divergence_logit_gap"])
    for run in report.runs:
        parting = run.first_divergence
        writer.writerow(
            [
                _cell(report.lanes[run.lane].name),
                *(_cell(getattr(run, name)) for name in fields),
                "" if parting is None else parting.index,
                "" if parting is None or parting.logit_gap is None else parting.logit_gap,
            ]
        )
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    # A spreadsheet would run it as a formula: a text that somebody typed must stay text.
    if isinstance(value, str) and value.startswith(_OPENS_FORMULA):
        return f"'{value}"
    return value
