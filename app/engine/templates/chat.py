"""Chat prompts by the model file's Jinja2 template; typed text never becomes a control token."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from app.engine.errors import PromptError
from app.engine.templates.options import TemplateOptions, Thinking
from app.engine.templates.process import Templates
from app.engine.types import Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # noncharacters, never part of real text: they enclose plain text
_MARKS = str.maketrans("", "", _OPEN + _CLOSE)
_PLAIN = re.compile(f"{_OPEN}(.*?){_CLOSE}", re.DOTALL)


class TokenizedPrompt(NamedTuple):
    """A prompt in the model's tokens."""

    text: str
    ids: NDArray[np.int32]  # shape [n]
    options: TemplateOptions  # the options that the chat template read


class ChatTemplate:
    """The chat template of a model file, which may have none."""

    def __init__(self, source: str, vocabulary: Vocabulary, templates: Templates) -> None:
        self._vocabulary = vocabulary
        self._source = source
        self._templates = templates
        spellings = "|".join(map(re.escape, vocabulary.control_texts()))
        # Every character at which a control token's spelling begins, also inside another's.
        self._first = re.compile(f"(?=(?:{spellings}))(.)" if spellings else r"(?!)", re.DOTALL)

    def thinking(self, stopped: Callable[[], bool] = lambda: False) -> Thinking | None:
        """The template's thinking options, None if it has none; raises PromptError."""
        if not self._source:
            return None
        return self._templates.thinking(self._source, *self._ends(), stopped)

    def tokenize(
        self,
        messages: Sequence[Message],
        options: TemplateOptions | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> TokenizedPrompt:
        """Render and tokenize the prompt for an answer; raises PromptError, also if `stopped` returns True
        while the template runs."""
        if not self._source:
            raise PromptError(
                "This model file has no chat template.", "Use completion mode, or another file."
            )
        vocabulary = self._vocabulary
        bos, eos = self._ends()
        guarded = [Message(message.role, self._guard(message.content)) for message in messages]
        given = {
            name: self._guard(value) if isinstance(value, str) else value
            for name, value in (options or {}).items()
        }
        text, read = self._templates.render(self._source, guarded, bos, eos, given, stopped)
        # Most templates write BOS themselves; a second BOS would disturb the model.
        add_bos = vocabulary.adds_bos and not (bos and text.startswith(bos))
        ids = [vocabulary.bos] if add_bos else []
        # The template's own text alternates with plain text.
        for place, part in enumerate(_PLAIN.split(text)):
            plain = bool(place % 2)
            if part := part.translate(_MARKS):
                if ids and vocabulary.piece(ids[-1]):
                    new = vocabulary.tokenize_behind(part, parse_special=not plain)
                else:
                    new = vocabulary.tokenize(part, special=False, parse_special=not plain)
                ids += new.tolist()
        told = {name: value for name, value in (options or {}).items() if name in read}
        return TokenizedPrompt(text.translate(_MARKS), np.array(ids, np.int32), told)

    def _ends(self) -> tuple[str, str]:
        """The texts of the BOS and EOS tokens."""
        return self._token_text(self._vocabulary.bos), self._token_text(self._vocabulary.eos)

    def _guard(self, content: str) -> str:
        """Mark the first character of every control token's spelling as plain text."""
        return self._first.sub(f"{_OPEN}\\1{_CLOSE}", content.translate(_MARKS))

    def _token_text(self, id: int) -> str:
        known = 0 <= id < self._vocabulary.size
        return self._vocabulary.raw_text(id).decode("utf-8", errors="replace") if known else ""
