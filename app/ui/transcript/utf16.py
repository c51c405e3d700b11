"""Offsets in characters and in UTF-16 units, which is what Qt counts."""

from __future__ import annotations


def utf16_length(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + sum(character > "\uffff" for character in text)


def to_utf16(text: str, offset: int) -> int:
    """The UTF-16 offset of a character offset."""
    return utf16_length(text[:offset])


def from_utf16(text: str, units: int) -> int:
    """The character offset of a UTF-16 offset; the middle of a character counts as its start."""
    if text.isascii():
        return min(units, len(text))
    for offset, character in enumerate(text):
        units -= 2 if character > "\uffff" else 1
        if units < 0:
            return offset
    return len(text)
