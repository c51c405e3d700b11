"""The result of a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Ended(NamedTuple):
    """The exit code, and what went to standard output and standard error."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]
"""Runs a command by its words."""
