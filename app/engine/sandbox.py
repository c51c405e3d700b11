"""Where a stranger's Jinja2 template runs: no way out, no huge step, and a limit on its time.

A file can carry any program as its chat template. The sandbox keeps it from reaching anything but its
arguments; a loop that does not end is broken off; and a single operation that would take all time or memory,
which nothing can break off, is refused before it begins.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.engine.errors import PromptError

TIME_LIMIT = 2.0  # seconds; real templates take milliseconds
_LONGEST_ERROR = 160  # characters
_LARGEST = 1_000_000  # numbers handed to functions, lengths of repeated texts, bits of numbers


class _TooLong(BaseException):
    """Raised inside a render that ran past its time."""


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment for templates that nobody has read."""

    intercepted_binops = frozenset(["*", "**"])

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        self.filters = {name: _guarded(function) for name, function in self.filters.items()}

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        _check((*args, *kwargs.values()))
        return super().call(context, function, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        for one, other in ((left, right), (right, left)):
            if operator == "*" and isinstance(other, int):
                _check([_size(one) * abs(other) if not isinstance(one, int) else _size(one) + _size(other)])
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _check([_size(left) * abs(right)])
        return super().call_binop(context, operator, left, right)


def _size(value: Any) -> int:
    """Length of a text or list, bits of a whole number."""
    if isinstance(value, int):
        return value.bit_length()
    return len(value) if hasattr(value, "__len__") else 1


def _check(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise jinja2.TemplateRuntimeError("a number in it is too large")


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that looks at its arguments first."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        _check((*args, *kwargs.values()))
        return function(*args, **kwargs)

    return guarded


def run_template(source: str, filters: dict[str, Callable[..., Any]], values: dict[str, Any]) -> str:
    """Render a template; raises PromptError where it refuses, fails or takes too long."""

    def render() -> str:
        sandbox = Sandbox()
        sandbox.filters |= filters
        return sandbox.from_string(source).render(values)

    try:
        return _within_time(render)
    except jinja2.TemplateError as error:
        raise PromptError(
            f"The model's chat template refused the messages: {_brief(error)}.",
            "Change the messages, or use completion mode.",
        ) from error
    except PromptError:
        raise
    except Exception as error:  # whatever a stranger's program can raise
        raise PromptError(
            f"The model's chat template failed: {type(error).__name__}: {_brief(error)}.",
            "Use completion mode, or another file.",
        ) from error


def _brief(error: Exception) -> str:
    """What an error says, in a line or two: a template may raise a text of any length."""
    words = " ".join(str(error)[:_LONGEST_ERROR].split())
    return f"{words}…" if len(str(error)) > _LONGEST_ERROR else words.removesuffix(".")


def _within_time(render: Callable[[], str]) -> str:
    """Run `render` on a thread and break it off after TIME_LIMIT.

    A template is compiled to Python code, so an exception raised into its thread ends any loop in it.
    """
    result: list[str] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            result.append(render())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="chat template", daemon=True)
    thread.start()
    thread.join(TIME_LIMIT)
    late = thread.is_alive()
    while thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_TooLong)
        )
        thread.join(0.05)
    if late:
        raise PromptError(
            "The model's chat template took too long and was broken off.",
            "Use completion mode, or another file.",
        )
    if errors:
        raise errors[0]
    return result[0]
