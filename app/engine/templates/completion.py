"""Prompts as tokens: of a chat, of text, with a gap to fill, of ids; documents before a question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from app.engine.errors import PromptError
from app.engine.templates.chat import ChatTemplate, TokenizedPrompt
from app.engine.types import GenerationRequest, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary

_LONGEST = 16  # characters of a token, on average over a text: far more than any tokenizer reaches


def tokenized(
    request: GenerationRequest, vocabulary: Vocabulary, template: ChatTemplate, stopped: Callable[[], bool]
) -> TokenizedPrompt:
    """The prompt of a request, whichever it gives; raises PromptError."""
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
    """The prompt for the text between `prefix` and `suffix`, shape [n], in llama.cpp's order (/infill): each
    after the model's token for it, the token for the middle last. Neither text becomes a control token.

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
    """The request with a document before everything that was asked: in the user's first message, or before
    the raw prompt."""
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
