"""The runs of a journal, to be looked at: nothing is measured, and no engine is needed."""

from __future__ import annotations

from collections.abc import Iterator

from app.engine.types import PairInfo
from app.lab.experiment import Job
from app.lab.report.compare import compared_runs
from app.lab.runs.events import Begun, Ended, LabEvent
from app.lab.runs.journal.journal import Journal
from app.lab.runs.journal.run_record import RunRecord
from app.lab.runs.journal.traces import TraceStore


class KeptRuns:
    """Has the attributes of a finished Runner."""

    def __init__(self, journal: Journal) -> None:
        """Raises UserError where the traces are not accessible."""
        self.traces = TraceStore(journal.trace_folder)
        self.pairs: dict[int, PairInfo] = journal.pairs
        self.records: dict[Job, RunRecord] = {}
        self._journal = journal

    def run(self) -> Iterator[LabEvent]:
        """Compare the runs with their baselines, as the measurement did."""
        self.records = compared_runs(self._journal.experiment, self._journal.records, self.traces)
        total = len(self._journal.experiment.jobs())
        yield Begun(self._journal.experiment, len(self.records), total)
        yield Ended(len(self.records) == total)

    def close(self) -> None:
        """Does nothing: no engine is held."""
