"""The command line: the window's abilities by name, for scripts and for machines without a screen."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 1 the work failed, with one line on standard error; 2 wrong usage; 130 interrupted.
    """
    # The installed script imports this package at its top, and the engine's own process that script
    # again: nothing is loaded before there is something to do.
    from app.cli.commands import run_command

    return run_command(argv)
