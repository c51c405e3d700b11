"""The texts and kinds of a file's tokens, read from its header at once.

llama.cpp needs a call for each token: half a second per question for 150,000 tokens. This table tells which
tokens are worth asking about, and whether two files have the same texts.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.base.files import open_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXTS, _KINDS = b"tokenizer.ggml.tokens", b"tokenizer.ggml.token_type"
_STRING, _ARRAY = 8, 9  # GGUF's value types
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of the other types
_U32, _U64 = struct.Struct("<I").unpack_from, struct.Struct("<Q").unpack_from
_PAIR = struct.Struct("<QQ").unpack_from

UNKNOWN, CONTROL = 2, 3
"""Kinds of tokens whose text users must not be able to write."""
BYTE = 6
_LENGTH_SIZE = 8  # bytes, before every text
_PRINTABLE = frozenset([*range(33, 127), *range(161, 173), *range(174, 256)])


@dataclass(frozen=True, slots=True)
class TokenTable:
    """The tokens of one file, by id."""

    texts: bytes
    """Every token's length and text, as in the file."""
    starts: NDArray[np.int64]
    """The offset of each token in `texts`, and the end; shape [tokens + 1]."""
    kinds: NDArray[np.int32]
    """GGUF's token types, shape [tokens]; empty if the file has none."""

    def span(self, first: int, end: int) -> bytes:
        """The lengths and texts of the tokens from `first` up to but excluding `end`."""
        return self.texts[self.starts[first] : self.starts[end]]

    def spelled_with(self, byte: int) -> list[int]:
        """The tokens, ascending, whose text may contain this byte in the spelling of any kind of
        vocabulary."""
        forms = {bytes([byte]), _byte_level(byte).encode()}
        if byte == ord(" "):
            forms.add("▁".encode())  # SentencePiece's
        texts = np.frombuffer(self.texts, np.uint8)
        found = [(self.kinds == BYTE).nonzero()[0]]  # byte tokens are named by their number
        for form in forms:
            places = (texts[: len(texts) - len(form) + 1] == form[0]).nonzero()[0]
            for offset in range(1, len(form)):
                places = places[texts[places + offset] == form[offset]]
            ids = self.starts.searchsorted(places, "right") - 1
            found.append(ids[places >= self.starts[ids] + _LENGTH_SIZE])
        spelled: list[int] = np.unique(np.concatenate(found)).tolist()
        return spelled


def _byte_level(byte: int) -> str:
    """GPT-2's spelling of a byte: the character itself if printable, else the next character from 256 on."""
    if byte in _PRINTABLE:
        return chr(byte)
    return chr(256 + sum(lower not in _PRINTABLE for lower in range(byte)))


def read_token_table(path: Path) -> TokenTable | None:
    """Read the table of a GGUF file (of a sharded model, the first); None if it cannot be read."""
    try:
        with open_file(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as head:
            return _read(head)
    except (OSError, ValueError, struct.error, KeyError, OverflowError):
        return None  # llama.cpp has read the file and is asked token by token


def _read(head: mmap.mmap) -> TokenTable | None:
    if head[:4] != b"GGUF":
        return None
    _tensors, keys = _PAIR(head, 8)
    at = 24
    texts, starts = b"", np.empty(0, np.int64)
    kinds: NDArray[np.int32] | None = None
    for _ in range(keys):
        (length,) = _U64(head, at)
        key = head[at + 8 : at + 8 + length]
        at += 8 + length
        (kind,) = _U32(head, at)
        at += 4
        if kind == _STRING:
            at += 8 + _U64(head, at)[0]
        elif kind != _ARRAY:
            at += _SIZES[kind]
        else:
            (kind,), (count,) = _U32(head, at), _U64(head, at + 4)
            at += 12
            if kind == _STRING:
                places = _string_places(head, at, count)
                if key == _TEXTS:
                    texts, starts = head[at : places[-1]], np.array(places, np.int64) - at
                at = places[-1]
            else:
                size = _SIZES[kind] * count
                if key == _KINDS and _SIZES[kind] == 4:
                    kinds = np.frombuffer(head[at : at + size], np.int32)
                at += size
        if len(starts) and kinds is not None:
            break
    return TokenTable(texts, starts, kinds if kinds is not None else np.empty(0, np.int32)) if texts else None


def _string_places(head: mmap.mmap, at: int, count: int) -> list[int]:
    """The offset of each string of an array, and the end."""
    length_at = _U64
    places = [at]
    for _ in range(count):
        at += 8 + length_at(head, at)[0]
        places.append(at)
    return places
