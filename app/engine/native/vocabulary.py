"""A model's vocabulary: text to token ids and back.

llama.cpp needs a call for each token: half a second per question for 150,000 tokens. `TokenTable` says which
tokens matter, and whether two files have the same texts."""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

from app.base.files import open_file
from app.engine.native.library import read_metadata

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
        """The tokens, ascending, whose text may contain this byte in any kind of vocabulary."""
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


_ENDINGS = ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")
"""Metadata keys of tokens that end the generation, whatever their kind."""
_OVERRIDDEN = re.compile(r"control-looking token: +(\d+) ")
_SPELLED = (1, 2, 3, 4)  # SentencePiece, BPE, WordPiece, Unigram: their spelling of bytes is known
_ANCHORS = ("\n", ".", "x")
"""Anchors of three kinds: a text that merges with one anchor into a token hardly merges with the next."""
_ATTR_UNKNOWN = 1 << 0
_ATTR_CONTROL = 1 << 3


class Pieces(dict[int, bytes]):
    """Token id -> the bytes that it adds to the text; read when first asked for.

    A dict subclass for speed: a round looks up some hundred pieces.
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
    """A read-only view of a model's vocabulary, valid as long as the model."""

    def __init__(self, model: Any, path: Path, log: Iterable[str]) -> None:
        """`log` is llama.cpp's log from loading the file at `path`."""
        self.handle = llama_cpp.llama_model_get_vocab(model)
        self._path = path
        named = (read_metadata(model, f"tokenizer.ggml.{name}_token_id") for name in _ENDINGS)
        overridden = (found[1] for line in log if (found := _OVERRIDDEN.search(line)))
        self._suspects = {int(id) for id in (*named, *overridden) if id.isdigit()}
        self.size: int = llama_cpp.llama_vocab_n_tokens(self.handle)
        self.kind: int = llama_cpp.llama_vocab_type(self.handle)
        self.bos: int = llama_cpp.llama_vocab_bos(self.handle)
        self.eos: int = llama_cpp.llama_vocab_eos(self.handle)
        self.adds_bos: bool = llama_cpp.llama_vocab_get_add_bos(self.handle)
        self.adds_eos: bool = llama_cpp.llama_vocab_get_add_eos(self.handle)
        self.pieces = Pieces(self.handle, self.size)

    @cached_property
    def _table(self) -> TokenTable | None:
        """The file's table; None if it differs from what llama.cpp has read."""
        table = read_token_table(self._path)
        return table if table is not None and len(table.starts) == self.size + 1 else None

    @cached_property
    def _marked(self) -> Sequence[int]:
        """The ids, ascending, of all tokens that may be control tokens or end the generation, and few others.
        Control tokens are marked in the file, or llama.cpp recognises them by their text and logs it. A token
        that ends the generation is one of these, or is named in the metadata.
        """
        table = self._table
        if table is None or len(table.kinds) != self.size:
            return range(self.size)
        marked = np.isin(table.kinds, (UNKNOWN, CONTROL)).nonzero()[0].tolist()
        return sorted(id for id in {*marked, *self._suspects} if id < self.size)

    @cached_property
    def end_ids(self) -> frozenset[int]:
        """The end-of-generation tokens."""
        handle = self.handle
        return frozenset(id for id in self._marked if llama_cpp.llama_vocab_is_eog(handle, id))

    @cached_property
    def fim(self) -> tuple[int, int, int] | None:
        """The tokens for prefix, suffix and middle (fill in the middle), as llama.cpp finds them in the file;
        None if one is missing."""
        handle = self.handle
        ids: tuple[int, int, int] = (
            llama_cpp.llama_vocab_fim_pre(handle),
            llama_cpp.llama_vocab_fim_suf(handle),
            llama_cpp.llama_vocab_fim_mid(handle),
        )
        return ids if min(ids) >= 0 else None

    def texts(self, first: int, end: int) -> bytes | None:
        """The lengths and raw texts of the tokens from `first` up to but excluding `end`; None if they cannot
        be read from the file."""
        return self._table.span(first, end) if self._table is not None else None

    def words_with(self, byte: int) -> Iterator[tuple[int, bytes]]:
        """Yield every token whose text contains this byte, with the text that llama.cpp writes for it alone;
        control tokens by name."""
        table = self._table if self.kind in _SPELLED else None
        ids = range(self.size) if table is None else table.spelled_with(byte)
        size, token = 256, (llama_cpp.llama_token * 1)()
        buffer = ctypes.create_string_buffer(size)
        for id in ids:
            token[0] = id
            n = llama_cpp.llama_detokenize(self.handle, token, 1, buffer, size, False, True)
            if n < 0:
                size = -n
                buffer = ctypes.create_string_buffer(size)
                n = llama_cpp.llama_detokenize(self.handle, token, 1, buffer, size, False, True)
            word = buffer.raw[:n]
            if byte in word:
                yield id, word

    def tokenize(self, text: str | bytes, *, special: bool, parse_special: bool) -> NDArray[np.int32]:
        """Token ids of `text`, shape [n]; bytes may be part of a character.

        `special` adds the tokens that the file wants at the ends (BOS). `parse_special` reads control tokens
        written as text; never set it for text that users typed.
        """
        raw = (
            text.encode(errors="replace") if isinstance(text, str) else text
        )  # half a surrogate pair cannot be encoded
        room = len(raw) + 8  # a token is at least one byte; BOS and EOS
        ids = (llama_cpp.llama_token * room)()
        n = llama_cpp.llama_tokenize(self.handle, raw, len(raw), ids, room, special, parse_special)
        if n < 0:
            ids = (llama_cpp.llama_token * -n)()
            n = llama_cpp.llama_tokenize(self.handle, raw, len(raw), ids, -n, special, parse_special)
        return np.ctypeslib.as_array(ids)[: max(n, 0)].astype(np.int32)

    @cached_property
    def puts_space(self) -> bool:
        """Whether a space is put before every text, as SentencePiece tokenizers do."""
        ids: list[int] = self.tokenize("x", special=False, parse_special=False).tolist()
        return b"".join(self.pieces[id] for id in ids if id >= 0) == b" x"

    def tokenize_behind(self, text: str, *, parse_special: bool) -> NDArray[np.int32]:
        """Token ids of `text` after other text, shape [n]: no space is put between them."""
        for anchor in _ANCHORS if self.puts_space else ():
            ids = self.tokenize(anchor + text, special=False, parse_special=parse_special)
            lead = b""
            for at, id in enumerate(ids.tolist()):
                if lead == b" " + anchor.encode():
                    return ids[at:]
                if id < 0 or len(lead) > len(anchor):
                    break  # it merged with the text, or is unknown
                lead += self.pieces[id]
        return self.tokenize(text, special=False, parse_special=parse_special)

    def piece(self, id: int) -> bytes:
        """The bytes that a token adds to the text; none for control tokens."""
        return self.pieces[id]

    def raw_text(self, id: int) -> bytes:
        """The token's text as the file spells it."""
        text: bytes = llama_cpp.llama_vocab_get_text(self.handle, id)
        return text

    def label(self, id: int) -> str:
        """The name of a token without text, such as "<|im_end|>"; empty for all others."""
        return "" if self.piece(id) else self.raw_text(id).decode("utf-8", errors="replace")

    def control_texts(self) -> list[str]:
        """The spellings that `parse_special` would turn into control tokens."""
        marked = _ATTR_CONTROL | _ATTR_UNKNOWN
        texts = []
        for id in self._marked:
            if llama_cpp.llama_vocab_get_attr(self.handle, id) & marked:
                texts.append(self.raw_text(id).decode("utf-8", errors="replace"))
        return [text for text in texts if text]
