"""Copies the tokenizer of one GGUF file into another, because the gguf package would take seconds."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from pathlib import Path

_HEAD = struct.Struct("<4sIQQ")  # magic, version, tensors, keys
_ALIGNMENT = 32  # of the tensors behind the keys
_FILLER = "tests.filler"
_STRING, _ARRAY, _U8 = 8, 9, 0  # GGUF's types of a value
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of the other types


def graft(path: Path, source: str) -> None:
    """Give the file at `path`, which has no tokenizer, the one of `source`."""
    kept = _tokenizer_keys(source)
    added = b"".join(kept.values())
    # The tensors keep their alignment: they move by a whole number of alignments.
    head = _string(_FILLER) + struct.pack("<I", _ARRAY) + struct.pack("<IQ", _U8, 0)
    fill = -(len(added) + len(head)) % _ALIGNMENT
    added += head[:-8] + struct.pack("<Q", fill) + bytes(fill)
    written = path.read_bytes()
    magic, version, tensors, keys = _HEAD.unpack_from(written)
    with path.open("wb") as file:
        file.write(_HEAD.pack(magic, version, tensors, keys + len(kept) + 1))
        file.write(added)
        file.write(memoryview(written)[_HEAD.size :])


def token_count(source: str) -> int:
    """The number of tokens in the file's vocabulary."""
    tokens = _tokenizer_keys(source)["tokenizer.ggml.tokens"]
    at = len(_string("tokenizer.ggml.tokens")) + 8  # the types of the value and of its elements
    count: int = struct.unpack_from("<Q", tokens, at)[0]
    return count


@functools.lru_cache(maxsize=2)
def _tokenizer_keys(source: str) -> dict[str, bytes]:
    """The tokenizer's keys with their values, as bytes of the file."""
    data = Path(source).read_bytes()
    return {key: data[start:end] for key, start, end in _spans(data) if key.startswith("tokenizer.")}


def _spans(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield each key of a file, where it begins, and where its value ends."""

    def behind(at: int, kind: int) -> int:
        return at + (_SIZES.get(kind) or 8 + length_at(data, at)[0])

    length_at = struct.Struct("<Q").unpack_from
    at = _HEAD.size
    for _ in range(_HEAD.unpack_from(data)[3]):
        start = at
        at = behind(at, _STRING)
        key = data[start + 8 : at].decode()
        (kind,) = struct.unpack_from("<I", data, at)
        if kind != _ARRAY:
            at = behind(at + 4, kind)
        else:
            kind, count = struct.unpack_from("<IQ", data, at + 4)
            at += 16
            if kind == _STRING:
                for _ in range(count):
                    at += 8 + length_at(data, at)[0]
            else:
                at += _SIZES[kind] * count
        yield key, start, at


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()
