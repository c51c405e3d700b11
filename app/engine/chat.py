"""Chat templates: the file's own Jinja2, rendered as what it is, code from a stranger.

Sandboxed and immutable, with a time limit, and only inside the engine. Text that people typed never becomes
a control token: its spellings are broken up before rendering, and tokenized apart.
"""

from __future__ import annotations

import ctypes
import datetime
import json
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from app.engine.errors import PromptError
from app.engine.types import Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary

TIME_LIMIT = 2.0  # seconds; real templates take milliseconds
_BREAK = "\ufdd0"  # a noncharacter: never part of real text
_MAX_CHARACTERS = 50_000_000


class ChatTemplate:
    """The chat template of a model file, or the reason why there is none."""

    def __init__(self, source: str, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._source = source
        spellings = sorted(vocabulary.control_texts(), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, spellings)) or r"(?!)")

    @property
    def exists(self) -> bool:
        return bool(self._source)

    def tokenize(self, messages: Sequence[Message]) -> tuple[str, NDArray[np.int32]]:
        """The prompt's text, and its token ids of shape [n]; raises PromptError."""
        if not self._source:
            raise PromptError(
                "This model file has no chat template.", "Use completion mode, or another file."
            )
        guarded = [{"role": message.role, "content": self._guard(message.content)} for message in messages]
        text = _within_time(lambda: self._render(guarded))
        if len(text) > _MAX_CHARACTERS:
            raise PromptError("The chat template made too long a text.", "Use completion mode.")
        vocabulary = self._vocabulary
        bos = self._token_text(vocabulary.bos)
        # Most templates write BOS themselves; two of them would disturb the model.
        add_bos = vocabulary.adds_bos and not (bos and text.startswith(bos))
        parts = text.split(_BREAK)
        ids = [vocabulary.tokenize(part, special=False, parse_special=True) for part in parts if part]
        if add_bos:
            ids.insert(0, np.array([vocabulary.bos], np.int32))
        return "".join(parts), np.concatenate(ids or [np.empty(0, np.int32)])

    def _guard(self, content: str) -> str:
        """Break every control token's spelling behind its first character."""
        clean = content.replace(_BREAK, "")
        return self._control.sub(lambda found: found[0][:1] + _BREAK + found[0][1:], clean)

    def _token_text(self, id: int) -> str:
        known = 0 <= id < self._vocabulary.size
        return self._vocabulary.raw_text(id).decode("utf-8", errors="replace") if known else ""

    def _render(self, messages: list[dict[str, str]]) -> str:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        try:
            return environment.from_string(self._source).render(
                messages=messages,
                add_generation_prompt=True,
                bos_token=self._token_text(self._vocabulary.bos),
                eos_token=self._token_text(self._vocabulary.eos),
                raise_exception=_raise,
                strftime_now=lambda pattern: datetime.datetime.now().strftime(pattern),
                tools=None,
            )
        except jinja2.TemplateError as error:
            raise PromptError(
                f"The model's chat template refused the messages: {error}.",
                "Change the messages, or use completion mode.",
            ) from error
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, MemoryError) as error:
            raise PromptError(
                f"The model's chat template failed: {type(error).__name__}: {error}.",
                "Use completion mode, or another file.",
            ) from error


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


class _TooLong(Exception):  # noqa: N818 - not an error
    """Raised inside a render that ran past its time."""


def _within_time(render: Any, limit: float | None = None) -> str:
    """Run `render` on a thread and break it off after `limit` seconds; raises PromptError.

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
    thread.join(TIME_LIMIT if limit is None else limit)
    late = thread.is_alive()
    while thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_TooLong)
        )
        thread.join(0.05)
    if late or (errors and isinstance(errors[0], _TooLong)):
        raise PromptError(
            "The model's chat template took too long and was broken off.",
            "Use completion mode, or another file.",
        )
    if errors:
        raise errors[0]
    return result[0]
