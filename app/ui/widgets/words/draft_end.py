"""Why a draft ended, as it is shown."""

from __future__ import annotations


def end_words(end: str) -> str:
    """A round's reason in words: drafters give only the name of a setting where that ended a draft."""
    return "; ".join(_words(reason) for reason in end.split("; "))


def _words(end: str) -> str:
    if end == "p_min":
        return "below p_min"
    is_setting = "_" in end and end.isidentifier()
    return f"at {end}" if is_setting else end
