"""What was measured of the drafts of a target, kept until it is measured again."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from app.base.files import DamagedError, decode, read_file, reason, write_atomic, write_hint
from app.base.paths import make_folder
from app.engine.errors import UserError
from app.lab.drafts.trials import DraftScore, DraftsReport, DraftTrials
from app.lab.runs.journal.identity import FileMark, mark_of

_FORMAT = "1.0"
_KEPT = 50  # targets


class DraftResults(msgspec.Struct, frozen=True):
    """The report on the drafts of a target, with its date and the files that were measured."""

    target: str  # its path
    prompts: str  # their title
    measured: datetime  # with its time zone
    report: DraftsReport
    paths: tuple[str, ...]  # of the report's drafts
    marks: tuple[FileMark | None, ...]  # theirs; None for a file that cannot be read
    target_mark: FileMark | None
    format: str = _FORMAT

    @classmethod
    def of(cls, target: str, prompts: str, trials: DraftTrials) -> DraftResults:
        """What was judged so far, as of now. Reads samples of the files."""
        paths = tuple(judged.draft.path for judged in trials.judged)
        marks = tuple(map(mark_of, paths))
        now = datetime.now().astimezone()
        return cls(target, prompts, now, trials.report(), paths, marks, mark_of(target))

    @property
    def scores(self) -> dict[str, DraftScore]:
        """The scores by path, the best first."""
        return dict(zip(self.paths, self.report.drafts, strict=True))

    def unchanged(self) -> DraftResults | None:
        """The results without drafts whose files have changed since; None where nothing is left, or where
        the target has changed. Reads samples of the files."""
        if self.target_mark is None or self.target_mark != mark_of(self.target):
            return None
        kept = [
            place
            for place, mark in enumerate(self.marks)
            if mark is not None and mark == mark_of(self.paths[place])
        ]
        if not kept:
            return None
        return replace(
            self,
            report=replace(self.report, drafts=tuple(self.report.drafts[place] for place in kept)),
            paths=tuple(self.paths[place] for place in kept),
            marks=tuple(self.marks[place] for place in kept),
        )


_decoder = msgspec.json.Decoder(DraftResults)


def results_in(data: bytes) -> DraftResults:
    """The results in a file. Raises DamagedError."""
    results = decode(_decoder, data)
    if not len(results.paths) == len(results.marks) == len(results.report.drafts):
        raise DamagedError("it names other drafts than it has results of")
    return results


class KeptDrafts:
    """The folder of results: a file for each target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, results: DraftResults) -> None:
        """Replace what was kept for this target. Raises UserError."""
        make_folder(self._folder)
        try:
            write_atomic(self._path(results.target), msgspec.json.encode(results))
            files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for old in files[:-_KEPT]:
                old.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"The results cannot be saved: {reason(error)}.", write_hint(error, self._folder)
            ) from error

    def read(self, target: str) -> DraftResults | None:
        """What was measured for this target, as far as its files are the same; None where nothing was. Reads
        samples of the files."""
        try:
            return results_in(read_file(self._path(target))).unchanged()
        except (OSError, DamagedError):  # they can be measured again
            return None

    def _path(self, target: str) -> Path:
        return self._folder / f"{hashlib.sha256(target.encode()).hexdigest()[:20]}.json"
