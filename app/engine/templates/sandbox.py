"""The template process: runs untrusted Jinja2 templates in a sandbox with limits.

A file can have any program as its chat template. The sandbox gives it access to its arguments only, and
refuses huge single steps. The system ends the process if a template runs too long, and limits its memory (on
Linux). `process.py` is the caller's side.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from typing import IO, Any

import jinja2
import msgspec
from jinja2 import meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.engine.templates.options import TemplateOptions, Thinking, find_thinking
from app.engine.types import Message

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
MEMORY_LIMIT = 1_000_000_000  # bytes of address space, the interpreter's 50 MB among them
MAX_CHARACTERS = 10_000_000  # more than any context; tokenizing it takes a second
OUT_OF_MEMORY = 3  # exit code
_HEAD = 8  # bytes before each message: its length
_LARGEST = 1_000_000  # numbers passed to functions, lengths of repeated texts, bits of numbers
_LONGEST_ERROR = 160  # characters
_SAMPLE = [{"role": "user", "content": "Hello"}]  # rendered to see what options do


class TemplateQuestion(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A question about a template; `seconds` is the time that the answer may take."""

    source: str
    bos_token: str
    eos_token: str
    seconds: float


class RenderQuestion(TemplateQuestion, frozen=True, kw_only=True, tag=True):
    """Asks for the text that the template makes of messages."""

    messages: list[Message]
    options: TemplateOptions


class ThinkingQuestion(TemplateQuestion, frozen=True, kw_only=True, tag=True):
    """Asks for the template's thinking options."""


class Rendered(msgspec.Struct, frozen=True, tag=True):
    """The rendered text, and the options that the template reads."""

    text: str
    read: list[str]


class Understood(msgspec.Struct, frozen=True, tag=True):
    """The template's thinking options, None if it has none."""

    thinking: Thinking | None


class TemplateRefused(msgspec.Struct, frozen=True, tag=True):
    """The reason why there is no answer, in sentences."""

    message: str
    hint: str


Answer = Rendered | Understood | TemplateRefused

encode = msgspec.msgpack.Encoder().encode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
_decode_question = msgspec.msgpack.Decoder(RenderQuestion | ThinkingQuestion).decode


def send(pipe: IO[bytes], message: bytes) -> None:
    """Write one message; raises OSError if the reader is gone."""
    pipe.write(len(message).to_bytes(_HEAD, "little") + message)
    pipe.flush()


def receive(pipe: IO[bytes], longest: int) -> bytes:
    """Read one message; raises EOFError if there is none, or if it is longer than `longest`."""
    length = int.from_bytes(_exactly(pipe, _HEAD), "little")
    if length > longest:
        raise EOFError
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


class _GenerationTag(Extension):
    """transformers' block around the assistant's text, for training; here only its body is rendered."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own way

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja2 environment for untrusted templates."""

    intercepted_binops = frozenset(["*", "**"])

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _GenerationTag])
        self.filters = {name: _guarded(function) for name, function in self.filters.items()}
        self.filters["tojson"] = _guarded(_to_json)

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        _check((*args, *kwargs.values()))
        return super().call(context, function, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        for value, other in ((left, right), (right, left)):
            if operator == "*" and isinstance(other, int):
                numbers = isinstance(value, int)
                _check([_size(value) + _size(other) if numbers else _size(value) * abs(other)])
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _check([_size(left) * abs(right)])
        return super().call_binop(context, operator, left, right)


def _size(value: Any) -> int:
    """The length of a text or list, the bits of a whole number."""
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if hasattr(value, "__len__") else 1


def _check(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise jinja2.TemplateRuntimeError("a number in it is too large")


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that first checks its arguments."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        _check((*args, *kwargs.values()))
        return function(*args, **kwargs)

    return guarded


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """transformers' own filter: jinja2's would escape HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


@functools.lru_cache(maxsize=2)
def _compiled(source: str) -> jinja2.Template:
    return Sandbox().from_string(source)


@functools.lru_cache(maxsize=2)
def _variables(source: str) -> set[str]:
    """The variables that a template may read, without their attributes."""
    return meta.find_undeclared_variables(Sandbox().parse(source))


def answer(question: RenderQuestion | ThinkingQuestion) -> Answer:
    """Answer a question about a template, or say why it cannot be rendered."""
    try:
        if isinstance(question, ThinkingQuestion):
            return _understood(question)
        text = _rendered(question, msgspec.to_builtins(question.messages), question.options)
        read = _variables(question.source).intersection(question.options) if question.options else ()
    except MemoryError:
        raise
    except jinja2.TemplateError as error:
        return TemplateRefused(
            f"The model's chat template refused the messages: {_brief(error)}.",
            "Change the messages, or use completion mode.",
        )
    except Exception as error:  # an untrusted program may raise anything
        return TemplateRefused(
            f"The model's chat template failed: {type(error).__name__}: {_brief(error)}.",
            "Use completion mode, or a different model file.",
        )
    if len(text) > MAX_CHARACTERS:
        return TemplateRefused(
            "The model's chat template made a text that is too long.", "Use completion mode."
        )
    return Rendered(_unicode(text), sorted(read))


def _rendered(question: TemplateQuestion, messages: list[dict[str, str]], options: TemplateOptions) -> str:
    return _compiled(question.source).render(
        options,
        messages=messages,
        add_generation_prompt=True,
        bos_token=question.bos_token,
        eos_token=question.eos_token,
        raise_exception=_raise,
        strftime_now=lambda pattern: datetime.datetime.now().strftime(pattern),
        tools=None,
    )


def _understood(question: ThinkingQuestion) -> Understood:
    def render(options: TemplateOptions) -> str | None:
        try:
            return _rendered(question, _SAMPLE, options)
        except MemoryError:
            raise
        except Exception:  # it refuses the option, or fails with it
            return None

    return Understood(find_thinking(_variables(question.source), render))


def _unicode(text: str) -> str:
    """The text with invalid Unicode replaced: a template may write any."""
    return text.encode("utf-8", errors="replace").decode()


def _brief(error: Exception) -> str:
    """An error's text, cut to a line or two: a template may raise any text."""
    words = _unicode(" ".join(str(error)[:_LONGEST_ERROR].split()))
    return f"{words}…" if len(str(error)) > _LONGEST_ERROR else words.removesuffix(".")


def _end_with_parent() -> None:
    """Let the system end this process with the engine (Linux): while stopped, it would not notice by
    itself."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def serve() -> None:
    """The process: answer questions until the pipe is closed."""
    _end_with_parent()
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    _limit_itself()
    try:
        send(answers, b"")  # ready
        while True:
            question = _decode_question(receive(questions, sys.maxsize))
            # The system's timer ends the process, whatever a template is doing.
            _alarm(question.seconds)
            said = encode(answer(question))
            _alarm(0.0)
            send(answers, said)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except (EOFError, OSError):
        os._exit(0)


def _alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_itself() -> None:
    """Limit memory and forbid writing files; the process may die of a refusal."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, most in (
        (resource.RLIMIT_AS, MEMORY_LIMIT),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS cannot limit memory
            resource.setrlimit(limit, (most, most))
