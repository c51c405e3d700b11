"""A model's vocabulary: text to token ids and back."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ATTR_UNKNOWN = 1 << 0
_ATTR_CONTROL = 1 << 3


class Pieces(dict[int, bytes]):
    """Token id -> the bytes that it adds to the text; read when first asked for.

    A dict of its own kind, because a round looks up some hundred pieces.
    """

    def __init__(self, vocabulary: Any, size: int) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._size = size

    def __missing__(self, id: int) -> bytes:
        if not 0 <= id < self._size:
            raise KeyError(id)  # llama.cpp would end the process
        buffer = ctypes.create_string_buffer(64)
        n = llama_cpp.llama_token_to_piece(self._vocabulary, id, buffer, 64, 0, False)
        if n < 0:
            buffer = ctypes.create_string_buffer(-n)
            n = llama_cpp.llama_token_to_piece(self._vocabulary, id, buffer, -n, 0, False)
        self[id] = buffer.raw[:n]
        return self[id]


class Vocabulary:
    """Read-only view of the vocabulary inside a model; lives as long as the model."""

    def __init__(self, model: Any) -> None:
        self._handle = llama_cpp.llama_model_get_vocab(model)
        self.size: int = llama_cpp.llama_vocab_n_tokens(self._handle)
        self.kind: int = llama_cpp.llama_vocab_type(self._handle)
        self.bos: int = llama_cpp.llama_vocab_bos(self._handle)
        self.eos: int = llama_cpp.llama_vocab_eos(self._handle)
        self.adds_bos: bool = llama_cpp.llama_vocab_get_add_bos(self._handle)
        self.adds_eos: bool = llama_cpp.llama_vocab_get_add_eos(self._handle)
        self.pieces = Pieces(self._handle, self.size)
        self._end_ids: frozenset[int] | None = None

    @property
    def end_ids(self) -> frozenset[int]:
        """The end-of-generation tokens."""
        if self._end_ids is None:
            handle = self._handle
            self._end_ids = frozenset(
                id for id in range(self.size) if llama_cpp.llama_vocab_is_eog(handle, id)
            )
        return self._end_ids

    def tokenize(self, text: str, *, special: bool, parse_special: bool) -> NDArray[np.int32]:
        """Token ids of `text`, shape [n].

        `special` adds what the file asks for at the ends (BOS); `parse_special` lets control tokens be
        written as text, which must never hold for text that people typed.
        """
        raw = text.encode(errors="replace")  # half a surrogate pair is no text
        room = len(raw) + 8  # a token is at least one byte; BOS and EOS
        ids = (llama_cpp.llama_token * room)()
        n = llama_cpp.llama_tokenize(self._handle, raw, len(raw), ids, room, special, parse_special)
        if n < 0:
            ids = (llama_cpp.llama_token * -n)()
            n = llama_cpp.llama_tokenize(self._handle, raw, len(raw), ids, -n, special, parse_special)
        return np.ctypeslib.as_array(ids)[: max(n, 0)].astype(np.int32)

    def piece(self, id: int) -> bytes:
        """The bytes that a token adds to the text: none for control tokens."""
        return self.pieces[id]

    def raw_text(self, id: int) -> bytes:
        """The token's text as the file spells it."""
        text: bytes = llama_cpp.llama_vocab_get_text(self._handle, id)
        return text

    def label(self, id: int) -> str:
        """The name of a token without text, such as "<|im_end|>"; empty for all others."""
        return "" if self.piece(id) else self.raw_text(id).decode("utf-8", errors="replace")

    def control_texts(self) -> list[str]:
        """The spellings that `parse_special` would turn into control tokens."""
        marked = _ATTR_CONTROL | _ATTR_UNKNOWN
        texts = []
        for id in range(self.size):
            if llama_cpp.llama_vocab_get_attr(self._handle, id) & marked:
                texts.append(self.raw_text(id).decode("utf-8", errors="replace"))
        return [text for text in texts if text]
