"""Prompts as tokens: from a chat, text, a gap to fill or ids; with documents before a question. A chat uses
the model file's Jinja2 template; typed text never becomes a control token."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from app.engine.errors import PromptError
from app.engine.templates.options import TemplateOptions, Thinking
from app.engine.templates.process import Templates
from app.engine.types import GenerationRequest, Message

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
                "This model file has no chat template.", "Use completion mode, or a different model file."
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


_LONGEST = 16  # characters of a token, on average over a text: far more than any tokenizer reaches


def tokenized(
    request: GenerationRequest, vocabulary: Vocabulary, template: ChatTemplate, stopped: Callable[[], bool]
) -> TokenizedPrompt:
    """The prompt of a request, in any of its forms; raises PromptError."""
    given = (request.prompt is not None, bool(request.messages), bool(request.prompt_ids))
    if sum(given) != 1:
        message = "There are several prompts." if any(given) else "There is no prompt."
        raise PromptError(message, "Give exactly one: a prompt, messages or token ids.")
    if request.suffix is not None and request.prompt is None:
        raise PromptError("A suffix needs a prompt.", "Give the text before the gap as the prompt.")
    if request.messages:
        made = template.tokenize(request.messages, request.template_options, stopped)
    elif request.prompt_ids:
        made = TokenizedPrompt(*from_ids(vocabulary, request.prompt_ids), {})
    elif request.suffix is not None:
        ids = fill_in_the_middle(vocabulary, request.prompt or "", request.suffix)
        made = TokenizedPrompt(request.prompt or "", ids, {})
    else:
        ids = vocabulary.tokenize(request.prompt or "", special=True, parse_special=False)
        made = TokenizedPrompt(request.prompt or "", ids, {})
    if not len(made.ids):
        raise PromptError("The prompt is empty.", "Type something first.")
    return made


def fill_in_the_middle(vocabulary: Vocabulary, prefix: str, suffix: str) -> NDArray[np.int32]:
    """The prompt for the text between `prefix` and `suffix`, shape [n], in llama.cpp's order (/infill). Each
    follows the model's token for it; the token for the middle is last. Neither text becomes a control token.

    Raises PromptError if the model has no such tokens.
    """
    if vocabulary.fim is None:
        raise PromptError(
            "This model has no tokens to fill in the middle.", "Choose a code model, such as Qwen2.5-Coder."
        )
    before, behind, middle = vocabulary.fim
    start = [vocabulary.bos] if vocabulary.adds_bos else []
    texts = [vocabulary.tokenize(text, special=False, parse_special=False) for text in (prefix, suffix)]
    return np.array([*start, before, *texts[0], behind, *texts[1], middle], np.int32)


def document(vocabulary: Vocabulary, text: str, depth: int) -> str:
    """The first `depth` tokens of a text; raises PromptError if it has fewer."""
    part = text[: depth * _LONGEST]
    ids = vocabulary.tokenize(part, special=False, parse_special=False)
    if len(ids) < depth:
        raise PromptError(
            f"The documents that fill the context have {len(ids):,} tokens of this model, not {depth:,}.",
            "Ask for a smaller depth.",
        )
    return b"".join(map(vocabulary.piece, ids[:depth].tolist())).decode("utf-8", errors="ignore")


def filled(request: GenerationRequest, text: str) -> GenerationRequest:
    """The request with a document before the question: in the user's first message, or before the raw
    prompt."""
    if request.prompt_ids or request.suffix is not None:
        raise PromptError("Only a question can follow a document.", "Leave out the depth.")
    if not request.messages:
        return replace(request, prompt=f"{text}\n\n{request.prompt}", filler="", depth=0)
    at = next((index for index, message in enumerate(request.messages) if message.role == "user"), 0)
    asked = Message(request.messages[at].role, f"{text}\n\n{request.messages[at].content}")
    messages = (*request.messages[:at], asked, *request.messages[at + 1 :])
    return replace(request, messages=messages, filler="", depth=0)


def from_ids(vocabulary: Vocabulary, ids: tuple[int, ...]) -> tuple[str, NDArray[np.int32]]:
    """The text of a prompt given as tokens, and its ids, shape [n]; raises PromptError for an id that is not
    in the vocabulary."""
    unknown = next((id for id in ids if not 0 <= id < vocabulary.size), None)
    if unknown is not None:
        raise PromptError(
            f"This model has no token {unknown}.", f"Its tokens are 0 to {vocabulary.size - 1:,}."
        )
    text = b"".join(vocabulary.piece(id) or vocabulary.raw_text(id) for id in ids)
    return text.decode("utf-8", errors="replace"), np.array(ids, np.int32)
