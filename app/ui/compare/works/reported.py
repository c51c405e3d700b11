"""The report of an experiment, made on the worker's thread between two runs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from app.engine.errors import UserError
from app.lab.depths import depth_curves
from app.lab.experiment import Experiment
from app.lab.report.curves import Curves
from app.lab.report.export.server_notes import server_limits
from app.lab.report.report import Report, SweepFacts, make_report
from app.lab.runs.disturbance import disturbances
from app.lab.runs.events import Begun, Ended, LabEvent, RunDone
from app.lab.runs.runner import Runner
from app.ui.compare.works.kept_runs import KeptRuns

_PAUSE = 0.5  # seconds between two reports
_SHARE = 10  # the pause is at least so many times the time that making a report takes


class Reported(LabEvent, frozen=True):
    """The report so far, what disturbed the measurement, and what servers did not tell."""

    report: Report
    doubts: tuple[str, ...]
    curves: Curves | None  # of a depth measurement


def reported(
    runner: Runner | KeptRuns, experiment: Experiment, sweep: SweepFacts | None
) -> Iterator[LabEvent]:
    """The runner's events with reports in between; the last report comes before the end."""
    due = 0.0

    def fold() -> Reported:
        nonlocal due
        began = time.monotonic()
        report = make_report(experiment, runner.records, runner.pairs, sweep=sweep)
        doubts = (*disturbances(report), *server_limits(report))
        now = time.monotonic()
        due = now + max(_PAUSE, _SHARE * (now - began))
        return Reported(report, doubts, depth_curves(report))

    try:
        for event in runner.run():
            if isinstance(event, Ended):
                yield fold()
            yield event
            if isinstance(event, Begun | RunDone) and time.monotonic() >= due:
                yield fold()
    except UserError:
        yield fold()
        raise
