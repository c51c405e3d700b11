"""The journal of a long run: the experiment, then a line for every finished run.

JSON Lines. Line 1 is the experiment with its files, library and processor: runs made with others do not
belong to it. Each further line is on disk before the next run begins, so work resumes after the last line
even after a power cut. A repeated run has a second line: the last one counts.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from app.base.files import OWN, DamagedError, decode, explained, open_file, open_own, read_file, write_atomic
from app.engine.devices.memory import cpu_name
from app.engine.errors import UserError
from app.engine.params import FileUse, params_of
from app.engine.strategy import known_spec
from app.engine.types import FinishReason, PairInfo
from app.lab.experiment import Experiment, Job
from app.lab.runs.record import RunRecord

_SAMPLES = 64
_SAMPLE = 64 * 2**10  # bytes


class FileMark(msgspec.Struct, frozen=True):
    """A file's identity, found without reading the whole file."""

    path: str
    size: int  # bytes
    digest: str  # of samples over its whole length; a time of change would differ for a copy


class MadeWith(msgspec.Struct, frozen=True):
    """The files, the llama.cpp and the processor of an experiment's runs."""

    files: tuple[FileMark, ...]  # those that could be read
    llama_cpp: str
    cpu: str


def made_with(experiment: Experiment) -> MadeWith:
    """The files, library and processor that runs of this experiment would now use."""
    paths: dict[str, None] = {}
    for lane in range(len(experiment.lanes)):
        pair = experiment.pair_of(lane)
        for model in (pair.target, pair.draft):
            if model is not None:
                paths[model.path] = None
        paths |= dict.fromkeys(_read_by(experiment.lanes[lane].strategy))
    paths |= dict.fromkeys(experiment.drafters)
    files = tuple(mark for path in paths if (mark := mark_of(path)) is not None)
    return MadeWith(files, importlib.metadata.version("llama-cpp-python"), cpu_name())


def _read_by(strategy: str) -> Iterator[str]:
    """The files that a strategy reads but does not write."""
    spec = known_spec(strategy)  # None: a plug-in, known to the engine only
    for part in spec.parts if spec is not None else ():
        for param in params_of(type(part.params)):
            if param.file is FileUse.READ and (path := getattr(part.params, param.name)):
                yield path


def changes(then: MadeWith, now: MadeWith) -> Iterator[str]:
    """The changes, each in a few words; files missing then or now are left out."""
    before = {mark.path: mark for mark in then.files}
    for mark in now.files:
        if mark != before.get(mark.path, mark):
            yield f"{Path(mark.path).name} has changed"
    if now.llama_cpp != then.llama_cpp:
        yield f"llama-cpp-python is {now.llama_cpp} instead of {then.llama_cpp}"
    if now.cpu != then.cpu:
        yield f"the processor is {now.cpu} instead of {then.cpu}"


def loaded_otherwise(then: PairInfo, now: PairInfo) -> str:
    """How the loading of a pair, or its server, has changed, in a few words; "" if it has not."""
    for what in ("model", "version", "speculation", "slots"):
        mine, theirs = getattr(now.server, what, None), getattr(then.server, what, None)
        if mine != theirs:
            return f"the server's {what} is {_words(mine)} instead of {_words(theirs)}"
    if now.devices != then.devices:
        return f"it runs on {now.devices} instead of {then.devices}"
    for model, before in ((now.target, then.target), (now.draft, then.draft)):
        if model is None or before is None:
            continue
        for mine, theirs, what in (
            (model.threads, before.threads, "number of threads"),
            (model.n_ctx, before.n_ctx, "context size"),
            (model.n_gpu_layers, before.n_gpu_layers, "number of layers on devices"),
        ):
            if mine != theirs:
                return f"{model.file} is loaded with a different {what}: {mine} instead of {theirs}"
    return ""


def _words(fact: object) -> str:
    return (", ".join(fact) if isinstance(fact, tuple) else str(fact)) or "none"


def mark_of(path: str) -> FileMark | None:
    """The file's mark; None for a file that cannot be read, whose loading will say why."""
    digest = hashlib.sha256()
    try:
        with open_file(Path(path)) as file:
            size = file.seek(0, 2)
            for at in range(_SAMPLES):
                file.seek(max(0, size - _SAMPLE) * at // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE))
    except (OSError, ValueError):  # a path with a zero byte is a ValueError
        return None
    return FileMark(path, size, digest.hexdigest())


_NAME, _VERSION = "draftscope-journal-", 2
FORMAT = f"{_NAME}{_VERSION}"


class OtherVersionError(UserError):
    """A different version of Draftscope wrote the journal."""


class _JournalFormat(msgspec.Struct, frozen=True):
    format: str


class JournalHead(msgspec.Struct, frozen=True):
    format: str
    experiment: Experiment
    made_with: MadeWith


class RunLine(msgspec.Struct, frozen=True, tag="run"):
    """A finished run."""

    job: Job
    record: RunRecord


class PairLine(msgspec.Struct, frozen=True, tag="pair"):
    """The pair loaded for these lanes."""

    lanes: tuple[int, ...]
    pair: PairInfo


_encode = msgspec.json.Encoder().encode
_format = msgspec.json.Decoder(_JournalFormat)
_head = msgspec.json.Decoder(JournalHead)
_line = msgspec.json.Decoder(RunLine | PairLine)


def _written(path: Path) -> AbstractContextManager[None]:
    return explained(f"{path} cannot be written", "Choose a different journal file.")


class Journal:
    """A journal. Only the holder of its lock may add lines (`lock_journal`)."""

    def __init__(self, path: Path, head: JournalHead) -> None:
        """Called by `create`, `open` and `read` only."""
        self.path = path
        self.experiment = head.experiment
        self.made_with = head.made_with
        self.records: dict[Job, RunRecord] = {}
        self.pairs: dict[int, PairInfo] = {}

    @classmethod
    def create(cls, path: Path, experiment: Experiment) -> Journal:
        """Begin a journal; raises UserError if the file exists or cannot be written."""
        if path.exists():
            raise UserError(f"{path.name} already exists.", "Resume from it, or choose a different name.")
        head = JournalHead(FORMAT, experiment, made_with(experiment))
        try:
            with _written(path):
                write_atomic(path, _encode(head) + b"\n")
        except UnicodeEncodeError as error:
            raise UserError(
                f"{path} cannot be written: a file name in it is not valid text.", "Rename the model file."
            ) from error
        return cls(path, head)

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open a journal to resume it; an incomplete last line is dropped. Raises UserError if it is not a
        journal, OtherVersionError if its version differs."""
        journal, end = cls._read(path)
        with _written(path):
            os.truncate(path, end)
        return journal

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read a journal that a different process may be writing; raises UserError as `open` does."""
        return cls._read(path)[0]

    @classmethod
    def _read(cls, path: Path) -> tuple[Journal, int]:
        """(the journal, the length of its whole lines in bytes)"""
        with explained(f"{path} cannot be read", "Choose a different journal."):
            lines = read_file(path).splitlines(keepends=True)
        try:
            _check_version(path, decode(_format, lines[0]).format)
            head = decode(_head, lines[0])
            if head.format != FORMAT or not lines[0].endswith(b"\n"):
                raise ValueError(head.format)
        except (IndexError, ValueError):  # a DamagedError is a ValueError
            raise UserError(
                f"{path.name} is not a journal.", "Choose one that bench or the window wrote."
            ) from None
        journal = cls(path, head)
        end = len(lines[0])
        for number, line in enumerate(lines[1:], start=2):
            if not line.endswith(b"\n"):
                break  # incomplete: that run is repeated
            try:
                journal._take(decode(_line, line))
            except DamagedError as error:
                if number == len(lines):
                    break
                raise UserError(
                    f"{path.name}, line {number}, is damaged: {error}.", "Start a new journal."
                ) from None
            end += len(line)
        return journal, end

    @property
    def trace_folder(self) -> Path:
        """The folder of its runs' traces, beside the journal."""
        return trace_folder_of(self.path)

    def add(self, line: RunLine | PairLine) -> None:
        """Write a line; raises UserError (a full disk)."""
        what, folder = f"{self.path} cannot be written", self.path.parent
        with explained(what, "Then resume from it.", folder=folder), open_own(self.path, "ab") as file:
            file.write(_encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(line)

    def _take(self, line: RunLine | PairLine) -> None:
        if isinstance(line, RunLine):
            self.records[line.job] = line.record
        else:
            self.pairs |= dict.fromkeys(line.lanes, line.pair)


def _check_version(path: Path, found: str) -> None:
    """Raise OtherVersionError for the format of an earlier or a later version."""
    version = found.removeprefix(_NAME)
    if found.startswith(_NAME) and version.isdecimal() and int(version[:9]) != _VERSION:
        which = "An earlier" if int(version[:9]) < _VERSION else "A later"
        raise OtherVersionError(
            f"{which} version of Draftscope wrote {path.name}: its measurement cannot continue here.",
            "Start a new one. The file is not changed.",
        )


def trace_folder_of(path: Path) -> Path:
    """The folder of traces beside a journal."""
    # Not the stem: llama-3.1 and llama-3.2 have the same.
    return path.with_name(f"{path.name.removesuffix('.jsonl')}-traces")


def lock_of(path: Path) -> Path:
    """The lock file beside a journal, held by its writer."""
    return path.with_name(f"{path.name}.lock")


def lock_journal(path: Path) -> FileLock:
    """Acquire the lock of a journal, to write it; `release` it afterwards, from any thread.

    Raises UserError if a different writer holds it, or if the lock file cannot be made.
    """
    lock = FileLock(lock_of(path), mode=OWN, thread_local=False)
    with _written(path):
        path.parent.stat()  # the lock would make a missing folder
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise UserError(
                f"Another window or command is measuring into {path.name}.",
                "Wait for it, or choose a different name.",
            ) from None
    return lock


def is_free(path: Path) -> bool:
    """Whether no process is writing a journal."""
    try:
        with FileLock(lock_of(path), mode=OWN).acquire(blocking=False):
            return True
    except (Timeout, OSError):
        return False


def open_journal(path: Path, experiment: Experiment) -> Journal:
    """Open the journal of an experiment, or begin it. The caller holds its lock.

    Raises UserError if it belongs to a different experiment, or if remaining runs would use different files,
    llama.cpp or processor.
    """
    if not path.exists():
        return Journal.create(path, experiment)
    journal = Journal.open(path)
    if experiment != journal.experiment:
        raise UserError(
            f"{path.name} belongs to a different measurement.",
            "Use the same settings as before, or a new journal.",
        )
    # Where nothing is left to do, the models may be gone.
    left = len(experiment.jobs()) - len(done_of(journal))
    if left and (changed := list(changes(journal.made_with, made_with(experiment)))):
        raise UserError(
            f"{path.name} was measured under different conditions: {', '.join(changed)}.",
            "New runs could not be compared with the runs in it; start a new journal.",
        )
    return journal


def done_of(journal: Journal) -> dict[Job, RunRecord]:
    """The runs that are not repeated. Failed runs are repeated: a missing file may be back, a full card may
    have room."""
    records = journal.records.items()
    return {job: record for job, record in records if record.finish_reason is not FinishReason.FAILED}
