"""The runs as CSV, a line for each run, for spreadsheets."""

from __future__ import annotations

import csv
import io

from app.base.numbers import cell
from app.lab.report.report import Report, SweepFacts
from app.lab.runs.journal.run_record import RunRecord

_LEFT_OUT = {
    "token_ids", "text", "first_divergence", "acc_per_pos", "acceptance_by_place",
    "judged_acceptance_by_place", "accepted_per_round", "lengths", "rejections", "strategies",
    "k_by_round", "smoothed_by_round", "alternatives", "whole_server", "arrival_gaps",
}  # fmt: skip
"""Fields that are no single number or too long for a cell; they are in the JSON."""


def csv_table(report: Report) -> str:
    """A line for each run, the lane's name first, in a sweep with its values; then a line for each cell of a
    sweep that is not allowed, with the reason. Lists and texts are in the JSON only."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = [name for name in RunRecord.__struct_fields__ if name not in _LEFT_OUT]
    facts = report.sweep
    axes = [] if facts is None else [facts.x, facts.y]
    writer.writerow(["name", *axes, *fields, "divergence_index", "divergence_logit_gap"])
    values = [] if facts is None else [_values(facts, report, lane) for lane in range(len(report.lanes))]
    for run in report.runs:
        parting = run.first_divergence
        writer.writerow(
            [
                cell(report.lanes[run.lane].name),
                *map(cell, values[run.lane] if values else ()),
                *(cell(getattr(run, name)) for name in fields),
                "" if parting is None else parting.index,
                "" if parting is None or parting.logit_gap is None else parting.logit_gap,
            ]
        )
    for place in facts.cells if facts is not None else ():
        if place.lane is None:
            error = [cell(place.refused) if name == "error" else "" for name in fields]
            writer.writerow(["", cell(place.x), cell(place.y), *error, "", ""])
    return out.getvalue()


def _values(facts: SweepFacts, report: Report, lane: int) -> tuple[str, str]:
    """A lane's values on both axes; those of a baseline are the values that its cells share."""
    cells = {place.lane for place in facts.cells}
    mine = (
        {lane}
        if lane in cells
        else {at for at in cells if at is not None and report.lanes[at].baseline == lane}
    )
    return facts.values_of(mine)
