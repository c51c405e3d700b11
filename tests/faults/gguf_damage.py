"""Damage to the numbers of a GGUF file: counts, lengths, types, sizes and offsets that a reader believes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of scalars, by type
_STRING, _ARRAY = 8, 9
_EDGES = (
    0,
    1,
    2,
    3,
    5,
    7,
    31,
    32,
    33,
    127,
    255,
    256,
    65535,
    10**6,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**63,
    2**64 - 1,
)


def damaged_numbers(data: bytes, random: Random) -> bytes:
    """The file with one to three of its numbers changed; everything else stays in its place."""
    changed = bytearray(data)
    fields = list(_numbers(data))
    for _ in range(random.choice((1, 1, 2, 3))):
        at, size = random.choice(fields)
        before = int.from_bytes(data[at : at + size], "little")
        near = (before + 1, before - 1, before * 2, before // 2, before ^ 1 << random.randrange(8 * size))
        value = random.choice((*_EDGES, *near, *near))
        changed[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(changed)


def _numbers(data: bytes) -> Iterator[tuple[int, int]]:
    """(place, bytes) of every number of the head, the counts of tensors and keys among them."""
    (tensors, keys), at = struct.unpack_from("<QQ", data, 8), 24
    yield from ((8, 8), (16, 8))
    for _ in range(keys):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
        yield at, 4
        kind, at = struct.unpack_from("<I", data, at)[0], at + 4
        found, at = _value(data, at, kind)
        yield from found
    for _ in range(tensors):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
        yield at, 4
        dimensions = struct.unpack_from("<I", data, at)[0]
        yield from ((at + 4 + 8 * axis, 8) for axis in range(dimensions))
        at += 4 + 8 * dimensions
        yield from ((at, 4), (at + 4, 8))  # type and offset
        at += 12


def _value(data: bytes, at: int, kind: int) -> tuple[list[tuple[int, int]], int]:
    """(the numbers of a value, where it ends); of an array its type, its length and its first elements."""
    if kind == _STRING:
        return [(at, 8)], at + 8 + struct.unpack_from("<Q", data, at)[0]
    if kind != _ARRAY:
        return [(at, _SIZES[kind])] * 3, at + _SIZES[kind]  # thrice: there are many more strings
    inner, length = struct.unpack_from("<IQ", data, at)
    found, at = [(at, 4), (at + 4, 8)], at + 12
    for index in range(length):
        numbers, at = _value(data, at, inner)
        if index < 3:
            found += numbers
    return found, at
