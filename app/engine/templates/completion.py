"""Prompts without a chat template: text with a gap to fill, and token ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.engine.errors import PromptError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary


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
