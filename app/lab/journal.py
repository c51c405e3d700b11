"""The journal of a long run: what is measured, then a line for every run that is over.

JSON Lines. Line 1 is the experiment; each further line is on disk before the next run begins, so that a
run which was broken off, however hard, goes on behind its last line.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from app.engine.errors import UserError
from app.engine.types import PairInfo
from app.files import reason
from app.lab.experiment import Experiment, Job
from app.lab.run_record import RunRecord

FORMAT = "draftscope-journal-1"


class JournalHead(msgspec.Struct, frozen=True):
    format: str
    experiment: Experiment


class RunLine(msgspec.Struct, frozen=True, tag="run"):
    """A run that is over."""

    job: Job
    record: RunRecord


class PairLine(msgspec.Struct, frozen=True, tag="pair"):
    """What was loaded for these lanes."""

    lanes: tuple[int, ...]
    pair: PairInfo


_encode = msgspec.json.Encoder().encode
_head = msgspec.json.Decoder(JournalHead)
_line = msgspec.json.Decoder(RunLine | PairLine)


class Journal:
    """A journal that lines are added to."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        """For `create` and `open`."""
        self.path = path
        self.experiment = experiment
        self.records: dict[Job, RunRecord] = {}
        self.pairs: dict[int, PairInfo] = {}

    @classmethod
    def create(cls, path: Path, experiment: Experiment) -> Journal:
        """Begin one; raises UserError where the file is there already or cannot be written."""
        line = _encode(JournalHead(FORMAT, experiment)) + b"\n"
        try:
            with path.open("xb") as file:
                file.write(line)
            return cls(path, experiment)
        except FileExistsError:
            raise UserError(
                f"{path.name} is there already.", "Go on from it, or choose another name."
            ) from None
        except OSError as error:
            raise UserError(f"{path} cannot be written: {reason(error)}.", "Choose another file.") from error

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Go on with one; a last line that broke off is dropped. Raises UserError where it is no journal."""
        try:
            lines = path.read_bytes().splitlines(keepends=True)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {reason(error)}.", "Choose another file.") from error
        try:
            head = _head.decode(lines[0])
            if head.format != FORMAT or not lines[0].endswith(b"\n"):
                raise ValueError(head.format)
        except (IndexError, ValueError, msgspec.DecodeError):
            raise UserError(
                f"{path.name} is not a journal of this version.", "Choose one that bench or the window wrote."
            ) from None
        known: list[RunLine | PairLine] = []
        end = len(lines[0])
        for number, line in enumerate(lines[1:], start=2):
            if not line.endswith(b"\n"):
                break  # broken off while it was written: that run is done again
            try:
                known.append(_line.decode(line))
            except msgspec.DecodeError as error:
                if number == len(lines):
                    break
                raise UserError(
                    f"{path.name}, line {number}, is damaged: {error}.", "Begin a new journal."
                ) from None
            end += len(line)
        try:
            os.truncate(path, end)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {reason(error)}.", "Choose another file.") from error
        journal = cls(path, head.experiment)
        for one in known:
            journal._take(one)
        return journal

    @property
    def trace_folder(self) -> Path:
        """Where the traces of its runs are kept: beside it."""
        return self.path.with_name(f"{self.path.stem}-traces")

    def add(self, line: RunLine | PairLine) -> None:
        """Write a line; raises UserError (a full disk)."""
        try:
            with self.path.open("ab") as file:
                file.write(_encode(line) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(
                f"{self.path} cannot be written: {reason(error)}.", "Make room, then go on from it."
            ) from error
        self._take(line)

    def _take(self, line: RunLine | PairLine) -> None:
        if isinstance(line, RunLine):
            self.records[line.job] = line.record
        else:
            self.pairs |= dict.fromkeys(line.lanes, line.pair)
