"""Resuming a journal: only where new runs would be comparable with its runs."""

from __future__ import annotations

from pathlib import Path

from app.engine.errors import UserError
from app.engine.types import FinishReason
from app.lab.experiment import Experiment, Job
from app.lab.runs.journal.identity import changes, made_with
from app.lab.runs.journal.journal import Journal
from app.lab.runs.journal.run_record import RunRecord


def open_journal(path: Path, experiment: Experiment) -> Journal:
    """Open the journal of an experiment, or begin it. The caller holds its lock.

    Raises UserError where it belongs to another experiment, and where remaining runs would be made with other
    files, another llama.cpp or another processor.
    """
    if not path.exists():
        return Journal.create(path, experiment)
    journal = Journal.open(path)
    if experiment != journal.experiment:
        raise UserError(
            f"{path.name} belongs to another measurement.",
            "Use the same settings as before, or another name for the journal.",
        )
    # Where nothing is left to do, the models may be gone.
    left = len(experiment.jobs()) - len(done_of(journal))
    if left and (changed := list(changes(journal.made_with, made_with(experiment)))):
        raise UserError(
            f"{path.name} was measured under other conditions: {', '.join(changed)}.",
            "New runs could not be compared with its runs; begin a new journal.",
        )
    return journal


def done_of(journal: Journal) -> dict[Job, RunRecord]:
    """The runs that are not repeated. Failed runs are: a missing file may be back, a full card may have
    room."""
    records = journal.records.items()
    return {job: record for job, record in records if record.finish_reason is not FinishReason.FAILED}
