"""Renders chat templates in a separate process, and ends it if a template takes too much time or memory."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from app.base.numbers import file_size
from app.base.processes import exit_words, start
from app.engine.errors import PromptError
from app.engine.templates import sandbox
from app.engine.templates.options import TemplateOptions, Thinking
from app.engine.types import Message

TIME_LIMIT = 2.0  # seconds; real templates take milliseconds
_START_LIMIT = 60.0  # seconds until the process has started, which is not the template's fault
_GRACE = 1.0  # seconds that the process has to end by itself
_LOOK = 0.02  # seconds between two checks whether the text is still wanted
_LONGEST = 4 * sandbox.MAX_CHARACTERS + 100  # bytes of an answer
_ALARM = getattr(signal, "SIGALRM", 0)  # the timer that the process sets for itself
_HINT = "Use completion mode, or a different model file."
_UNREADABLE = "The model's chat template returned something that cannot be read."

# Isolated (-I): neither the working folder nor the environment affects imports. Without site (-S), whose
# paths are handed over, it starts in nine tenths of the time.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from app.engine.templates.sandbox import serve
serve()
"""
_ROOT = str(Path(__file__).parents[3])


class Templates:
    """The rendering process, started by `start` or at its first use, and kept. For use by one thread."""

    def __init__(self, limit: float = TIME_LIMIT) -> None:
        """`limit` is the time that one text may take, in seconds."""
        self._limit = limit
        self._process: TemplateProcess | None = None

    def start(self) -> None:
        """Start the process for the next `render` without waiting for it; raises PromptError."""
        if self._process is not None and not self._process.is_alive:
            self.close()
        try:
            self._process = self._process or TemplateProcess()
        except OSError as error:
            raise PromptError(
                f"The process that renders chat templates cannot be started: {error.strerror}.",
                "Memory may be short; try again.",
            ) from error

    def render(
        self,
        source: str,
        messages: Sequence[Message],
        bos: str,
        eos: str,
        options: TemplateOptions,
        stopped: Callable[[], bool],
    ) -> tuple[str, list[str]]:
        """Render messages: return the text, and the names of the options that the template reads.

        Raises PromptError if the template refuses, fails, or takes too much time or memory, and soon after
        `stopped` returns True.
        """
        question = sandbox.RenderQuestion(
            source=source,
            messages=list(messages),
            bos_token=bos,
            eos_token=eos,
            options=options,
            seconds=self._limit,
        )
        said = self._ask(question, stopped)
        if not isinstance(said, sandbox.Rendered):
            raise PromptError(_UNREADABLE, _HINT)
        return said.text, said.read

    def thinking(self, source: str, bos: str, eos: str, stopped: Callable[[], bool]) -> Thinking | None:
        """A template's thinking options, None if it has none; raises PromptError."""
        question = sandbox.ThinkingQuestion(source=source, bos_token=bos, eos_token=eos, seconds=self._limit)
        said = self._ask(question, stopped)
        if not isinstance(said, sandbox.Understood):
            raise PromptError(_UNREADABLE, _HINT)
        return said.thinking

    def _ask(self, question: sandbox.TemplateQuestion, stopped: Callable[[], bool]) -> sandbox.Answer:
        self.start()
        assert self._process is not None
        try:
            said = self._process.ask(question, stopped)
        except BaseException:
            self.close()  # it may still be running
            raise
        if isinstance(said, sandbox.TemplateRefused):
            raise PromptError(said.message, said.hint)
        return said

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
            self._process = None


class TemplateProcess:
    """A process that answers one question after another."""

    def __init__(self) -> None:
        """Raises OSError."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, json.dumps([_ROOT, *sys.path])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # nobody reads the interpreter's messages about a template
            start_new_session=True,  # Ctrl+C is for the parent to handle
        )
        self._ready = False

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: sandbox.TemplateQuestion, stopped: Callable[[], bool]) -> sandbox.Answer:
        """Ask a question. Raises PromptError if the process ends or does not answer, or if `stopped` returns
        True."""
        said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # On a thread: a stuck process neither reads nor answers, and pipes have no time limit.
        asking = (sandbox.encode(question), said)
        start(threading.Thread(target=self._exchange, args=asking, name="chat template", daemon=True))
        if _next(said, _START_LIMIT, stopped) is None:
            raise PromptError("The process that renders chat templates did not start.", "Try again.")
        data = _next(said, question.seconds + _GRACE, stopped)
        if data is None:
            raise self._explain(question)
        try:
            answer: sandbox.Answer = sandbox.decode_answer(data)
        except ValueError:  # msgspec's errors, and text that is not UTF-8
            raise PromptError(_UNREADABLE, _HINT) from None
        return answer

    def _exchange(self, question: bytes, said: queue.SimpleQueue[bytes | None]) -> None:
        """Put a first message once the process has started, then its answer; None if it has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            if not self._ready:
                sandbox.receive(self._process.stdout, 0)
                self._ready = True
            said.put(b"")
            sandbox.send(self._process.stdin, question)
            said.put(sandbox.receive(self._process.stdout, _LONGEST))
        except (EOFError, OSError, ValueError):  # a closed pipe is a ValueError
            said.put(None)

    def _explain(self, question: sandbox.TemplateQuestion) -> PromptError:
        """The error for an ended process."""
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return _too_long(question)
        if code == -_ALARM:
            return _too_long(question)
        if code == sandbox.OUT_OF_MEMORY:
            limit = file_size(sandbox.MEMORY_LIMIT)
            return PromptError(f"The model's chat template asked for more than {limit} of memory.", _HINT)
        return PromptError(
            f"The model's chat template ended the process that it ran in ({exit_words(code)}).", _HINT
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # unwritten data
                pipe.close()


def _too_long(question: sandbox.TemplateQuestion) -> PromptError:
    return PromptError(
        f"The model's chat template took longer than {question.seconds:g} s and was stopped.", _HINT
    )


def _next(said: queue.SimpleQueue[bytes | None], seconds: float, stopped: Callable[[], bool]) -> bytes | None:
    """The next message, None if none comes within `seconds` or at all; raises PromptError if `stopped`
    returns True."""
    until = time.monotonic() + seconds
    while True:
        try:
            return said.get(timeout=_LOOK)
        except queue.Empty:
            if stopped():
                raise PromptError("Stopped while the chat template was running.") from None
            if time.monotonic() > until:
                return None
