"""Journals of measurements: an interrupted one can continue, a finished one can be shown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from app.base import numbers
from app.base.files import DamagedError, decode, explained, read_file, write_atomic
from app.base.paths import make_folder
from app.engine.errors import UserError
from app.engine.types import FinishReason
from app.lab.report.report import SweepFacts, depths_of
from app.lab.runs.journal import Journal, OtherVersionError, is_free, lock_of, trace_folder_of
from app.ui.widgets import kit

KEPT = 5
"""The number of journals kept; a long one takes some megabytes with its traces."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier measurement."""

    path: Path
    journal: Journal
    sweep: SweepFacts | None = None  # its grid, where its lanes are cells

    @property
    def total(self) -> int:
        return len(self.journal.experiment.jobs())

    @property
    def depths(self) -> tuple[int, ...]:
        """The depths of a depth measurement; none for other kinds."""
        return depths_of(self.journal.experiment.prompts)

    @property
    def failed(self) -> int:
        """Failed runs, which are tried again when the measurement continues."""
        return sum(record.finish_reason is FinishReason.FAILED for record in self.journal.records.values())

    @property
    def done(self) -> int:
        return len(self.journal.records) - self.failed

    @property
    def complete(self) -> bool:
        """Whether all runs are done."""
        return self.done >= self.total

    @property
    def broken_off(self) -> bool:
        """Whether it has runs, but not all were tried."""
        return self.done > 0 and len(self.journal.records) < self.total

    @property
    def begun(self) -> datetime:
        return datetime.strptime(self.path.stem[:15], "%Y%m%d-%H%M%S")


_sweep = msgspec.json.Decoder(SweepFacts)


class Journals:
    """The folder of journals. A journal in use is locked: it is neither offered nor removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new(self, sweep: SweepFacts | None = None) -> Path:
        """A path for a new journal; removes old journals. Raises UserError."""
        make_folder(self.folder)
        path = self.folder / f"{datetime.now():%Y%m%d-%H%M%S-%f}.jsonl"  # so that names sort by time
        if sweep is not None:
            with explained("The grid cannot be saved", folder=self.folder):
                write_atomic(_grid_of(path), msgspec.json.encode(sweep))
        for old in self._to_remove(KEPT - 1):
            self.remove(old)
        return path

    def latest(self) -> Earlier | None:
        """The newest readable measurement that has a run and is not in use."""
        return next((earlier for earlier in self._readable() if earlier.done), None)

    def broken_off(self) -> Earlier | None:
        """The newest interrupted measurement."""
        return next((earlier for earlier in self._readable() if earlier.broken_off), None)

    def discard(self, earlier: Earlier) -> None:
        """Remove a measurement, unless it was continued since it was read, perhaps in a different window."""
        now = next((kept for kept in self._readable() if kept.path == earlier.path), None)
        if now is not None and now.journal.records == earlier.journal.records:
            self.remove(earlier.path)

    def remove(self, path: Path) -> None:
        """Remove a journal and its traces."""
        shutil.rmtree(trace_folder_of(path), ignore_errors=True)
        for file in (path, _grid_of(path), lock_of(path)):
            file.unlink(missing_ok=True)

    def paths(self) -> list[Path]:
        """The paths of all journals, the newest first."""
        return sorted(self.folder.glob("*.jsonl"), reverse=True)

    def _readable(self) -> Iterator[Earlier]:
        """The measurements, the newest first, without those damaged or in use."""
        for path in self.paths():
            if not is_free(path):
                continue
            try:
                journal = Journal.read(path)
                grid = _grid_of(path)
                sweep = decode(_sweep, read_file(grid)) if grid.exists() else None
            except (UserError, OSError, DamagedError):
                continue
            yield Earlier(path, journal, sweep)

    def _to_remove(self, keep: int) -> list[Path]:
        """All journals but `keep`: first those without a run, then the oldest; interrupted ones last.
        Journals of other versions, which may continue them, stay and do not count."""
        worth = {earlier.path: 1 + earlier.broken_off for earlier in self._readable() if earlier.done}
        free = [path for path in self.paths() if is_free(path) and not _is_of_other_version(path)]
        return sorted(free, key=lambda path: worth.get(path, 0), reverse=True)[keep:]


def _is_of_other_version(path: Path) -> bool:
    try:
        Journal.read(path)
    except OtherVersionError:
        return True
    except UserError:
        pass  # damaged
    return False


def _grid_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}-sweep.json")


class EarlierRuns(QFrame):
    """Offers one earlier measurement at a time, with its set-up and progress."""

    wanted = Signal(object)
    """An Earlier: continue it, or show it if it is complete."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.journals = Journals(folder)
        self.offered: Earlier | None = None
        self.setProperty("kind", "card")
        self._words = kit.label(wrap=True, plain=True)
        self.accept = kit.button("", self._accept)
        self.dismiss = kit.button("", self._dismiss, kind="flat")
        kit.row((self._words, 1), self.accept, self.dismiss, margins=(16, 8, 12, 8), spacing=8, on=self)
        self.hide()

    @property
    def text(self) -> str:
        return self._words.text()

    def offer_any(self) -> None:
        """Offer an interrupted measurement, or otherwise the latest one to look at."""
        self.offer(self.journals.broken_off() or self.journals.latest())

    def offer_broken_off(self) -> None:
        """After a measurement, offer one that can be continued: the same or an earlier one."""
        self.offer(self.journals.broken_off())

    def offer(self, earlier: Earlier | None) -> None:
        """Offer this measurement; None offers nothing."""
        self.offered = earlier
        self.setVisible(earlier is not None)
        if earlier is None:
            return
        when = f"{earlier.begun:%d %B, %H:%M}".lstrip("0")
        experiment = earlier.journal.experiment
        what = f"{numbers.count(len(experiment.lanes), 'lane')}, {experiment.title}"
        if earlier.depths:
            what += f", {numbers.count(len(earlier.depths), 'depth')}"
        words = f"Your last measurement, from {when}: {what}. All {earlier.total:,} runs are done."
        if not earlier.complete:
            ended = "was interrupted" if earlier.broken_off else "has runs that failed"
            done = f"{earlier.done:,} of {earlier.total:,} runs are done."
            words = f"A measurement from {when} {ended}: {what}. {done}"
        self._words.setText(words)
        self.accept.setText("Show it" if earlier.complete else "Resume")
        self.dismiss.setText("Dismiss" if earlier.complete else "Discard")

    def _accept(self) -> None:
        if self.offered is not None:
            self.wanted.emit(self.offered)

    def _dismiss(self) -> None:
        if self.offered is not None and not self.offered.complete:
            self.journals.discard(self.offered)
        self.offer(None)
