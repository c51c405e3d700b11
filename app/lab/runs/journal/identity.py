"""The files, library and processor of a journal's runs: runs made with others do not belong to it."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.base.files import open_file
from app.engine.devices.cores import cpu_name
from app.engine.errors import SettingError
from app.engine.params import FileUse, params_of
from app.engine.strategy import StrategySpec
from app.engine.types import PairInfo
from app.lab.experiment import Experiment

_SAMPLES = 64
_SAMPLE = 64 * 2**10  # bytes


class FileMark(msgspec.Struct, frozen=True):
    """A file's identity, which does not need the whole file to be read."""

    path: str
    size: int  # bytes
    digest: str  # of samples over its whole length; a time of change would differ for a copy


class MadeWith(msgspec.Struct, frozen=True):
    """The files, the llama.cpp and the processor of an experiment's runs."""

    files: tuple[FileMark, ...]  # those that could be read
    llama_cpp: str
    cpu: str


def made_with(experiment: Experiment) -> MadeWith:
    """The files, library and processor that runs of this experiment would be made with now."""
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
    """The files that a strategy reads and does not write."""
    try:
        parts = StrategySpec.parse(strategy).parts
    except SettingError:
        return  # a plug-in, known to the engine only
    for part in parts:
        for param in params_of(type(part.params)):
            if param.file is FileUse.READ and (path := getattr(part.params, param.name)):
                yield path


def changes(then: MadeWith, now: MadeWith) -> Iterator[str]:
    """What has changed, each in a few words; a file that was missing then or is missing now is left out."""
    before = {mark.path: mark for mark in then.files}
    for mark in now.files:
        if mark != before.get(mark.path, mark):
            yield f"{Path(mark.path).name} has changed"
    if now.llama_cpp != then.llama_cpp:
        yield f"llama-cpp-python is {now.llama_cpp} instead of {then.llama_cpp}"
    if now.cpu != then.cpu:
        yield f"the processor is {now.cpu} instead of {then.cpu}"


def loaded_otherwise(then: PairInfo, now: PairInfo) -> str:
    """How the loading of a pair has changed, or the server that answers; in a few words, "" where it has
    not."""
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
    """The file's mark; None for a file that cannot be read: loading it will say why."""
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
