"""Makes other quantisations of a model file, each in a child process, because llama.cpp may abort."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from app.base.files import partial_of, reason, remove_partials, sync_names, write_hint
from app.base.numbers import file_size
from app.base.paths import make_folder
from app.base.processes import Child
from app.engine.errors import ModelFileError, UserError, no_model_at
from app.engine.process.limits import go_first
from app.engine.shards import shard_of
from app.engine.types import UNQUANTISED
from app.hub.library.shelf import model_at
from app.hub.names import without_quantisation

USUAL = ("Q4_0", "Q4_K_M", "Q8_0", "F16")
KINDS = (
    "Q3_K_M", "Q4_0", "Q4_1", "IQ4_XS", "IQ4_NL", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_1", "Q5_K_M", "Q6_K",
    "Q8_0", "F16", "BF16",
)  # fmt: skip
"""The offered formats, which need no importance matrix."""
LARGE = 2 * 10**9
"""The command line asks before it writes this many bytes or more."""
_LOOK = 0.1  # seconds between two looks at a file that grows


@dataclass(frozen=True, slots=True)
class QuantFile:
    """A model in one quantisation; `is_here`: its file already exists."""

    kind: str
    path: Path
    size: int  # bytes; planned, of a file to be made
    is_here: bool
    note: str = ""  # what llama.cpp could not do as asked


@dataclass(frozen=True, slots=True)
class QuantPlan:
    """The quantisations of a file: first its own, then the requested ones."""

    files: tuple[QuantFile, ...]

    @property
    def source(self) -> QuantFile:
        return self.files[0]

    @property
    def missing(self) -> tuple[QuantFile, ...]:
        return tuple(file for file in self.files if not file.is_here)

    @property
    def size(self) -> int:
        """Bytes that will be written."""
        return sum(file.size for file in self.missing)

    @property
    def warning(self) -> str:
        """A warning about quantising a quantised file; "" for an original."""
        if len(self.files) < 2 or (kind := self.source.kind).lower() in UNQUANTISED:
            return ""
        return (
            f"{self.source.path.name} is already quantised ({kind}). Quantising it again loses more quality "
            "than quantising the F16 original; the speed is the same."
        )


class Quantiser:
    """Plans and makes files in its own folder: `FOLDER/SOURCE-DIGEST/NAME.KIND.gguf`. A changed source has a
    different digest. Existing files are not made again. Blocking; safe from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def free(self) -> int:
        """Free bytes where files are made. Raises UserError if none can be made."""
        make_folder(self.folder)
        return shutil.disk_usage(self.folder).free

    def plan(
        self, source: Path, kinds: Sequence[str], stopped: Callable[[], bool] = lambda: False
    ) -> QuantPlan:
        """Plan which quantisations of `source` exist and which would be made, with sizes; writes nothing. The
        source's own kind is the source itself. Raises UserError, and InterruptedError if `stopped`."""
        model = model_at(source)
        if model is None:
            raise no_model_at(source)
        if model.problem:
            raise ModelFileError(f"{source.name} is not complete: {model.problem}", model.hint)
        source = model.path
        found = _ask(source, kinds, None, stopped)
        digest = hashlib.sha256(f"{source.name} {model.size} {model.changed}".encode(errors="replace"))
        shard = shard_of(source.name)
        stem = shard.stem if shard else source.name.removesuffix(".gguf")
        folder = self.folder / f"{stem}-{digest.hexdigest()[:8]}"
        files = [QuantFile(found.quantisation or "?", source, model.size, True)]
        for kind, (planned, tensors, fallbacks) in zip(kinds, found.sizes, strict=True):
            path = folder / f"{without_quantisation(stem)}.{kind}.gguf"
            is_here = path.is_file()
            if kind != found.quantisation:
                note = f"{fallbacks} of {tensors} tensors do not fit {kind} and get a larger format."
                size = path.stat().st_size if is_here else planned
                files.append(QuantFile(kind, path, size, is_here, note if fallbacks * 10 > tensors else ""))
        return QuantPlan(tuple(files))

    def make(
        self,
        plan: QuantPlan,
        told: Callable[[QuantFile, float], None] = lambda _file, _share: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make the missing files; `told` gets the written share of each, in [0, 1]. No partial file is ever
        left. Raises UserError, and InterruptedError if `stopped`."""
        if not plan.missing:
            return
        free = self.free
        remove_partials(self.folder)
        if free < plan.size:
            raise UserError(
                f"{file_size(plan.size)} are needed in {self.folder}, and {file_size(free)} are free.",
                "Free some disk space, or choose fewer formats.",
            )
        for file in plan.missing:
            self._make(plan.source.path, file, told, stopped)

    def _make(
        self,
        source: Path,
        file: QuantFile,
        told: Callable[[QuantFile, float], None],
        stopped: Callable[[], bool],
    ) -> None:
        partial = partial_of(file.path)

        def look() -> bool:
            with contextlib.suppress(FileNotFoundError):  # it is not started
                told(file, min(1.0, partial.stat().st_size / file.size))
            return stopped()

        try:
            if stopped():  # a small file is made before the first look
                raise InterruptedError
            file.path.parent.mkdir(exist_ok=True)
            _ask(source, (file.kind,), partial, look)
            with partial.open("rb+") as written:
                os.fsync(written.fileno())
            os.replace(partial, file.path)
            sync_names(file.path.parent)
        except InterruptedError:
            raise
        except OSError as error:
            raise UserError(
                f"{file.path.name} was not written: {reason(error)}.", write_hint(error, file.path.parent)
            ) from error
        finally:
            partial.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it has other files
                file.path.parent.rmdir()


class _Sized(msgspec.Struct, frozen=True, tag=True):
    """The source's kind, and (bytes, tensors, fallbacks) of each kind."""

    quantisation: str
    sizes: tuple[tuple[int, int, int], ...]


class _NotSized(msgspec.Struct, frozen=True, tag=True):
    """Why there is no size, in a sentence."""

    message: str
    hint: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Sized | _NotSized).decode


def _ask(source: Path, kinds: Sequence[str], target: Path | None, stopped: Callable[[], bool]) -> _Sized:
    """Quantise in a child process; raises UserError, and InterruptedError if it was `stopped`."""
    child = Child("draftscope quantiser", _quantise, source, tuple(kinds), target)
    try:
        while not child.connection.poll(_LOOK):
            if stopped():
                raise InterruptedError
        answer: _Sized | _NotSized = child.hear(_decode)
    except (EOFError, ConnectionError):
        raise ModelFileError(
            f"Quantising {source.name} ended its process.", "Memory may be short, or the file damaged."
        ) from None
    finally:
        child.close()
    if isinstance(answer, _NotSized):
        raise ModelFileError(answer.message, answer.hint)
    return answer


def _quantise(connection: Connection, source: Path, kinds: tuple[str, ...], target: Path | None) -> None:
    """The child process: one answer."""
    from app.engine.native import on_abort
    from app.engine.native.header import FileHeader
    from app.engine.native.model import quantise

    def answer(words: _Sized | _NotSized) -> None:
        connection.send_bytes(_encode(words))

    go_first()
    on_abort(lambda text: answer(_NotSized(f"llama.cpp cannot quantise {source.name}: {text.strip()}", "")))
    try:
        header = FileHeader(source)
        answer(_Sized(header.quantisation, tuple(quantise(source, kind, target) for kind in kinds)))
    except UserError as error:
        answer(_NotSized(error.message, error.hint))
    except OSError as error:
        folder = (target or source).parent
        answer(_NotSized(f"The file was not written: {reason(error)}.", write_hint(error, folder)))
