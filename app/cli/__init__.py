"""The command line: the window's abilities by name, for scripts and for machines without a screen."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done; 1 the work failed, with one line on standard error; 2 wrong usage; 130 interrupted.
    """
    # The installed script imports this package, and the engine's process imports that script again: import
    # nothing more before a command runs.
    from app.cli.commands import run_command

    return run_command(argv)
