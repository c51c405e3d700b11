"""The probe process reads the metadata of untrusted model files, so a hostile file crashes only this process.
`Reader` asks it, and survives its crashes."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.base.files import reason
from app.base.processes import Child
from app.engine.compat import ASSISTANT, HEAD_STRATEGIES, MTP, VocabularyFit, check_vocabularies
from app.engine.devices.memory import Device
from app.engine.errors import ModelFileError, UserError
from app.engine.process.limits import go_first
from app.hub.fits import Room

if TYPE_CHECKING:
    from app.engine.native.header import FileHeader


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file's metadata; missing numbers are 0, missing texts empty."""

    architecture: str
    name: str
    parameters: int
    quantisation: str  # such as "Q4_K_M"
    context: int  # tokens it was trained for
    layers: int
    vocabulary_size: int
    vocabulary: str  # a digest: equal for equal vocabularies
    recurrent: bool = False  # its state cannot be rolled back
    chat: bool = False  # it has a chat template
    refusal: str = ""  # why it cannot be loaded as a language model, as a clause after "because"
    licence: str = ""  # as the file names it, such as "apache-2.0"
    width: int = 0  # numbers in a row between two layers: of a head, those of the target that it reads
    made_for: str = ""  # the architecture of an MTP head's target
    mtp: int = 0  # MTP heads, which `layers` counts
    reads: tuple[int, ...] = ()  # layers of its target, as an EAGLE-3 or DFlash file names them
    bases: tuple[str, ...] = ()  # names of models that it was made from, or made for
    splits: str = ""  # llama.cpp's name for how its tokenizer splits text

    @property
    def strategy(self) -> str:
        """The strategy that drafts with it, if it is a head; empty for a model."""
        return HEAD_STRATEGIES.get(self.architecture, "")


def short_number(count: int) -> str:
    """A number of parameters in short form: "1.7B", "135M"; empty for 0."""
    for unit, scale in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= scale * 0.9995:
            value = count / scale
            return f"{value:.1f}{unit}".replace(".0", "") if value < 99.95 else f"{value:.0f}{unit}"
    return str(count) if count else ""


_KEPT_OPEN = 2  # a target, and one draft after another
_EMBEDDING = ("bert", "embedding")
_WIDTHS = ("target_hidden_size", "embedding_length_out", "embedding_length")
_LONGEST = 80  # characters: a file may hold any text


class ProbeQuestion(msgspec.Struct, frozen=True):
    """Asks for a file's metadata. With two files (the target's first), asks whether one can draft for the
    other; without a path, for this machine's devices."""

    paths: tuple[str, ...] = ()


class ProbeAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was asked for, or why a file cannot be read: a message and a hint, for people."""

    facts: Facts | None = None
    fit: VocabularyFit | None = None
    devices: tuple[Device, ...] = ()  # the CPU among them
    unreadable: tuple[str, str] | None = None


encode = msgspec.msgpack.Encoder().encode
decode_answer = msgspec.msgpack.Decoder(ProbeAnswer).decode
_decode_question = msgspec.msgpack.Decoder(ProbeQuestion).decode


def serve(connection: Connection) -> None:
    """Answer questions until the pipe is closed."""
    go_first()  # in case a file makes it allocate all memory
    headers = _Headers()
    try:
        while True:
            question = _decode_question(connection.recv_bytes())
            connection.send_bytes(encode(_answer(question, headers)))
    except (EOFError, OSError):
        os._exit(0)


def _answer(question: ProbeQuestion, headers: _Headers) -> ProbeAnswer:
    try:
        files = [headers.open(path) for path in question.paths]
        if len(files) == 1:
            return ProbeAnswer(_facts(files[0]))
        if files:
            return ProbeAnswer(fit=check_vocabularies(*(file.vocabulary for file in files)))
        from app.engine.native.devices import list_devices

        return ProbeAnswer(devices=list_devices())
    except UserError as error:
        return ProbeAnswer(unreadable=(error.message, error.hint))


class _Headers:
    """The most recently read files, still open."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str, int, int], FileHeader] = OrderedDict()

    def open(self, path: str) -> FileHeader:
        from app.engine.native import on_abort
        from app.engine.native.header import FileHeader

        on_abort(lambda _text: None)  # the reader says what happened; nothing is printed
        key = path, 0, 0
        with contextlib.suppress(OSError):  # opening it reports the problem
            status = os.stat(path)
            key = path, status.st_mtime_ns, status.st_size
        if key not in self._open:
            self._open[key] = FileHeader(Path(path))
        self._open.move_to_end(key)
        while len(self._open) > _KEPT_OPEN:
            self._open.popitem(last=False)[1].close()
        return self._open[key]


def _facts(header: FileHeader) -> Facts:
    return Facts(
        header.kind[:_LONGEST],
        header.name[:_LONGEST],
        header.n_params,
        header.quantisation,
        header.number("context_length"),
        header.number("block_count"),
        header.vocabulary.size,
        header.vocabulary_digest(),
        header.is_recurrent,
        bool(header.metadata("tokenizer.chat_template")),
        _refusal(header),
        header.metadata("general.license")[:_LONGEST],
        next(filter(None, map(header.number, _WIDTHS)), 0),
        header.architecture.removesuffix("-assistant") if header.kind in (MTP, ASSISTANT) else "",
        header.number("nextn_predict_layers"),
        header.reads,
        tuple(base[:_LONGEST] for base in header.bases),
        header.metadata("tokenizer.ggml.pre")[:_LONGEST],
    )


def _refusal(header: FileHeader) -> str:
    if header.kind in HEAD_STRATEGIES:
        return header.fault  # it drafts for the target that it was made for
    if header.is_diffusion or header.has_encoder or not header.has_decoder:
        return "it does not write text token by token"
    if any(word in header.architecture for word in _EMBEDDING):
        return "it is for embeddings, and writes no text"
    if not header.vocabulary.kind or not header.vocabulary.size:
        return "it has no vocabulary"
    return ""


PATIENCE = 30.0  # seconds for one answer, which takes about ten milliseconds
_GOODBYE_SECONDS = 0.2  # unless it hangs in a file


class NoAnswerError(ModelFileError):
    """The probe gave no answer, because of the file or the machine."""


class Reader:
    """The caller's side. The process starts at the first question. Safe from any thread."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._lock = threading.Lock()
        self._probe: Child | None = None

    def facts(self, path: Path) -> Facts:
        """The facts of a model file (of a sharded model, the first). Raises ModelFileError (NoAnswerError if
        asking again may help)."""
        facts = self._ask_of(path, ProbeQuestion((str(path),))).facts
        assert facts is not None
        return facts

    def compare(self, target: Path, draft: Path) -> VocabularyFit:
        """How a draft can serve a target, by their vocabularies; raises ModelFileError."""
        fit = self._ask_of(draft, ProbeQuestion((str(target), str(draft)))).fit
        assert fit is not None
        return fit

    def room(self) -> Room:
        """Free memory on this machine now; raises ModelFileError."""
        try:
            return Room.of(self._ask(ProbeQuestion()).devices)
        except (EOFError, OSError):
            raise NoAnswerError(
                "The free memory of this machine could not be read.",
                "llama.cpp did not list its devices; memory may be short. Try again.",
            ) from None

    def close(self) -> None:
        with self._lock:
            self._end()

    def _ask_of(self, path: Path, question: ProbeQuestion) -> ProbeAnswer:
        try:
            return self._ask(question)
        except UnicodeEncodeError:
            raise ModelFileError(
                f"{path.name!a} cannot be read: its name is not valid text.", "Rename the file."
            ) from None
        except TimeoutError:
            raise NoAnswerError(
                f"{path.name} could not be read within {self.patience:.0f} seconds.",
                "It may be damaged, or its disk slow.",
            ) from None
        except (EOFError, OSError) as error:
            # The process ended, or its message has an impossible length: an OSError without a number.
            if isinstance(error, (EOFError, ConnectionError)) or error.errno is None:
                raise NoAnswerError(
                    f"{path.name} is damaged or malicious: reading it ended the process twice.",
                    "Delete it, or download it again.",
                ) from None
            # Of starting the process: the file was not opened.
            raise NoAnswerError(
                f"{path.name} was not read: {reason(error)}.", "Memory may be short: close other programs."
            ) from error

    def _ask(self, question: ProbeQuestion) -> ProbeAnswer:
        """The probe's answer. Raises TimeoutError, EOFError or OSError if no probe answers, and
        ModelFileError."""
        with self._lock:
            try:
                answer = self._ask_once(question)
            except TimeoutError:
                raise
            except (EOFError, OSError):
                # An idle probe is killed first where memory is short: that says nothing about the file.
                answer = self._ask_once(question)
        if answer.unreadable is not None:
            raise ModelFileError(*answer.unreadable)
        return answer

    def _ask_once(self, question: ProbeQuestion) -> ProbeAnswer:
        try:
            self._probe = self._probe or Child("draftscope probe", serve)
            answer: ProbeAnswer = self._probe.ask(encode(question), decode_answer, self.patience)
            return answer
        except (EOFError, OSError):
            self._end()
            raise

    def _end(self) -> None:
        if self._probe is not None:
            self._probe.close(_GOODBYE_SECONDS)
            self._probe = None
