"""Reads model files in the probe process, and survives whatever they do to it."""

from __future__ import annotations

import threading
from pathlib import Path

from app.base.processes import hear, start_child
from app.engine.compat import VocabularyFit
from app.engine.errors import ModelFileError
from app.hub.fits import Room
from app.hub.library.probe import (
    Answer,
    Compare,
    Compared,
    Devices,
    Facts,
    ProbeDevices,
    Question,
    Read,
    ReadFacts,
    Unreadable,
    decode_answer,
    encode,
    serve,
)

PATIENCE = 30.0  # seconds for one answer, which takes about ten milliseconds
_GOODBYE_SECONDS = 2.0


class NoAnswerError(ModelFileError):
    """The probe gave no answer: the file or the machine may be the reason."""


class Reader:
    """The asking side. The process starts at the first question. Safe from any thread."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._lock = threading.Lock()
        self._probe: _Probe | None = None

    def facts(self, path: Path) -> Facts:
        """The facts of a model file (the first, of a sharded model); raises ModelFileError (NoAnswerError
        where asking again may help)."""
        answer = self._ask_of(path, ReadFacts(str(path)))
        assert isinstance(answer, Read)
        return answer.facts

    def compare(self, target: Path, draft: Path) -> VocabularyFit:
        """How a draft can serve a target, by their vocabularies; raises ModelFileError."""
        answer = self._ask_of(draft, Compare(str(target), str(draft)))
        assert isinstance(answer, Compared)
        return answer.fit

    def room(self) -> Room:
        """Free memory on this machine now; raises ModelFileError."""
        try:
            answer = self._ask(ProbeDevices())
        except (EOFError, OSError):
            raise NoAnswerError(
                "The free memory of this machine could not be read.",
                "llama.cpp did not list its devices; memory may be short. Try again.",
            ) from None
        assert isinstance(answer, Devices)
        return Room.of(answer.devices)

    def close(self) -> None:
        with self._lock:
            self._end()

    def _ask_of(self, path: Path, question: Question) -> Answer:
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
        except (EOFError, OSError):
            raise NoAnswerError(
                f"{path.name} is damaged or malicious: reading it ended the process twice.",
                "Delete it, or download it again.",
            ) from None

    def _ask(self, question: Question) -> Answer:
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
        if isinstance(answer, Unreadable):
            raise ModelFileError(answer.message, answer.hint)
        return answer

    def _ask_once(self, question: Question) -> Answer:
        try:
            self._probe = self._probe or _Probe()
            return self._probe.ask(question, self.patience)
        except (EOFError, OSError):
            self._end()
            raise

    def _end(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None


class _Probe:
    """One probe process."""

    def __init__(self) -> None:
        self._process, self._connection = start_child("draftscope probe", serve)

    def ask(self, question: Question, patience: float) -> Answer:
        """Send a question and wait for the answer. Raises TimeoutError, and EOFError or OSError if the
        process is gone."""
        self._connection.send_bytes(encode(question))
        if not self._connection.poll(patience):
            raise TimeoutError
        answer: Answer = hear(self._connection, decode_answer)
        return answer

    def close(self) -> None:
        self._connection.close()  # the process then ends, unless it hangs in a file
        self._process.join(0 if self._process.exitcode is not None else 0.2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(_GOODBYE_SECONDS)
        self._process.close()
