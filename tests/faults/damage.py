"""Damage as disks, cut downloads and strangers do it, determined by a random generator."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

Damage = Callable[[bytes, Random], bytes]

_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**64, -(2**63), 10**400, 1e308, 1e-320, 0.5, "", " ", "\0", "\ud800",
    "x" * 100_000, "../../etc/passwd", "-1", "NaN", [], {}, [[]], [None], {"": None}, [1, "a", {}],
)  # fmt: skip
_NUMBERS = (
    b"-1",
    b"0",
    b"1e999",
    b"-1e999",
    b"NaN",
    b"9" * 400,
    b"0.0000001",
    b"null",
    b"true",
    b"[]",
    b'""',
)


def damaged(data: bytes, random: Random) -> bytes:
    """The bytes after one to four damages."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = random.choice(_BYTES)(data, random)
    return data


def damaged_text(data: bytes, random: Random) -> bytes:
    """JSON or JSON Lines after a damage that may leave it well formed: a wrong value, a lost line."""
    lines = data.splitlines(keepends=True)
    kind = random.randrange(4)
    if kind == 0 or not lines:
        return damaged(data, random)
    if kind == 1:
        at = random.randrange(len(lines))
        lines[at : at + 1] = random.choice(
            ([], [lines[at]] * 2, [random.choice(lines)], [b"\n"], [b"[" * 5000])
        )
        return b"".join(lines)
    if kind == 2 and (numbers := [at for at, byte in enumerate(data) if chr(byte).isdigit()]):
        at = end = random.choice(numbers)
        while end < len(data) and chr(data[end]).isdigit():
            end += 1
        return data[:at] + random.choice(_NUMBERS) + data[end:]
    whole = data.startswith(b"{\n") or len(lines) == 1
    at = random.randrange(len(lines))
    source = data if whole else lines[at]
    try:
        changed = json.dumps(_changed(json.loads(source), random), ensure_ascii=True).encode()
    except (ValueError, RecursionError):
        return damaged(data, random)
    return changed if whole else b"".join([*lines[:at], changed + b"\n", *lines[at + 1 :]])


def _changed(value: Any, random: Random) -> Any:
    """The value with one of its parts, however deep, replaced, removed or renamed."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        match random.randrange(8):
            case 0:
                return {name: part for name, part in value.items() if name != key}
            case 1:
                return {name + "x" * (name == key): part for name, part in value.items()}
            case _:
                return value | {key: _changed(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        return [*value[:at], _changed(value[at], random), *value[at + 1 :]]
    return random.choice(_VALUES)


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 8, 64)) if changed else 0):
        changed[_place(changed, random)] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, random: Random) -> bytes:
    at, length = _place(data, random), random.choice((1, 4, 8, 512, 4096))
    filler = random.choice((b"\0", b"\xff", b"\x7f", random.randbytes(1)))
    return data[:at] + (filler * length)[: max(0, len(data) - at)] + data[at + length :]


def _remove(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + data[at + random.choice((1, 8, 100, 4096)) :]


def _insert(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + random.randbytes(random.choice((1, 8, 100))) + data[at:]


def _repeat(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + data[at : at + random.choice((8, 200, 4096))] * 2 + data[at:]


def _place(data: bytes | bytearray, random: Random) -> int:
    """Any place, but half of the time near the beginning, where sizes and counts are."""
    end = min(len(data), 3000) if random.random() < 0.5 else len(data)
    return random.randrange(end) if end else 0


_BYTES: tuple[Damage, ...] = (_cut, _flip, _flip, _overwrite, _overwrite, _remove, _insert, _repeat)
