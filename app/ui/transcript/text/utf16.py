"""Offsets in characters and in UTF-16 units, which is what Qt counts."""

from __future__ import annotations


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(_encoded(text)) // 2


def to_utf16(text: str, offset: int) -> int:
    """The UTF-16 offset of a character offset."""
    return utf16_length(text[:offset])


def from_utf16(text: str, units: int) -> int:
    """The character offset of a UTF-16 offset; the middle of a character counts as its start."""
    if text.isascii():
        return min(units, len(text))
    return len(_encoded(text)[: 2 * units].decode("utf-16-le", "ignore"))


def _encoded(text: str) -> bytes:
    # A codec is faster than a loop over characters: every line asks at every repaint.
    return text.encode("utf-16-le", "replace")
