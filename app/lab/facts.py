"""The circumstances of a measurement: machine, versions, model files."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app import __version__
from app.base.files import open_file
from app.engine.devices.cores import cpu_name
from app.engine.types import ModelInfo, PairInfo

_CHUNK = 4 * 2**20


class SystemFacts(msgspec.Struct, frozen=True):
    app: str
    llama_cpp_python: str
    python: str
    system: str
    cpu: str
    cores: int
    devices: str
    threads: int


class FileFacts(msgspec.Struct, frozen=True):
    """A model file, without its folder."""

    file: str
    name: str
    architecture: str
    quantisation: str
    size: int  # bytes
    n_params: int
    n_ctx: int
    threads: int
    memory: int | None  # bytes in use; None where unknown
    sha256: str | None  # None where it was not computed


class PairFacts(msgspec.Struct, frozen=True):
    target: FileFacts
    draft: FileFacts | None
    vocabulary: str  # the vocabulary check, in words
    passes: tuple[dict[int, float], ...] = ()
    """Seconds of target passes by their tokens, for each time that it was loaded; `quants` measures them."""

    def memory(self, needs_draft: bool) -> int | None:
        """The bytes that a lane on this pair needs; None where unknown."""
        parts = [self.target.memory]
        if needs_draft and self.draft is not None:
            parts.append(self.draft.memory)
        known = [size for size in parts if size is not None]
        return sum(known) if len(known) == len(parts) else None


Digest = Callable[[str], str | None]
"""Path of a model file -> its SHA-256."""


def no_digest(_path: str) -> str | None:
    """No digest: for where reading the files again would take too long."""
    return None


def system_facts(pair: PairInfo | None) -> SystemFacts:
    return SystemFacts(
        app=__version__,
        llama_cpp_python=importlib.metadata.version("llama-cpp-python"),
        python=platform.python_version(),
        system=platform.platform(terse=True),
        cpu=cpu_name(),
        cores=os.cpu_count() or 1,
        devices=pair.devices if pair else "",
        threads=pair.target.threads if pair else 0,
    )


def pair_facts(
    pair: PairInfo, digest: Digest = no_digest, passes: Sequence[dict[int, float]] = ()
) -> PairFacts:
    draft = _file_facts(pair.draft, digest) if pair.draft else None
    return PairFacts(_file_facts(pair.target, digest), draft, pair.vocabulary, tuple(passes))


def _file_facts(model: ModelInfo, digest: Digest) -> FileFacts:
    return FileFacts(
        file=model.file,
        name=model.name,
        architecture=model.architecture,
        quantisation=model.quantisation,
        size=model.size,
        n_params=model.n_params,
        n_ctx=model.n_ctx,
        threads=model.threads,
        memory=sum(device.total for device in model.memory) or None,
        sha256=digest(model.path),
    )


def sha256(path: str, stopped: Callable[[], bool] = lambda: False) -> str | None:
    """The SHA-256 of a file, in hex; None where it cannot be read (it was moved) or was `stopped`."""
    whole = hashlib.sha256()
    try:
        with open_file(Path(path)) as file:
            while chunk := file.read(_CHUNK):
                if stopped():
                    return None
                whole.update(chunk)
    except OSError:
        return None
    return whole.hexdigest()
