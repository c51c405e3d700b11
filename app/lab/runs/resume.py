"""Going on with a journal: only where further runs would belong to those that are there."""

from __future__ import annotations

from pathlib import Path

from app.engine.errors import UserError
from app.engine.types import FinishReason
from app.lab.experiment import Experiment, Job
from app.lab.runs.identity import changes, made_with
from app.lab.runs.journal import Journal
from app.lab.runs.run_record import RunRecord


def open_journal(path: Path, experiment: Experiment) -> Journal:
    """The journal of an experiment, begun where there is none; for who holds its lock.

    Raises UserError where it belongs to another experiment, and where runs are left to do that would be made
    with other files, another llama.cpp or on another processor.
    """
    if not path.exists():
        return Journal.create(path, experiment)
    journal = Journal.open(path)
    if experiment != journal.experiment:
        raise UserError(
            f"{path.name} belongs to another measurement.",
            "Give the same settings as then, or another name for this one.",
        )
    # Where nothing is left to do, the models need not be there any more.
    left = len(experiment.jobs()) - len(done_of(journal))
    if left and (changed := list(changes(journal.made_with, made_with(experiment)))):
        raise UserError(
            f"{path.name} was measured with something else: {', '.join(changed)}.",
            "Runs of both would not compare; begin a new journal.",
        )
    return journal


def done_of(journal: Journal) -> dict[Job, RunRecord]:
    """Runs that are not done again. What failed is: the missing file may be there, the full card may have
    room."""
    records = journal.records.items()
    return {job: record for job, record in records if record.finish_reason is not FinishReason.FAILED}
