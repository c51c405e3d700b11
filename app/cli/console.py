"""What is said on the terminal: UTF-8 whatever the locale, and never to a reader who has left."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

from app.engine.errors import UserError
from app.files import reason

PROGRAM = "draftscope"


def use_utf8() -> None:
    """Make both outputs UTF-8, also where the locale is C or the console has a code page."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def say(line: str) -> None:
    """One line on standard error."""
    tell(f"{line}\n")


def tell(text: str) -> None:
    """Text on standard error, as it is. That nobody can read it is no reason to end the work."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def complain(command: str, message: str) -> None:
    """One line on standard error that says what went wrong in which command."""
    # llama.cpp and templates may put line breaks into what they say.
    say(f"{command}: {' '.join(message.split())}")


def end_output() -> None:
    """Write out what is still held back; at this point nobody is left to be told that it cannot be."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            drop(stream)


def drop(stream: TextIO) -> None:
    """Send the rest of an output nowhere: its reader has left, and Python would complain at its exit."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class AnswerPrinter:
    """Prints an answer on standard output as it comes, for as long as somebody reads it.

    An output that cannot be written (a full disk) is a UserError, once.
    """

    def __init__(self) -> None:
        self.open = True  # somebody reads
        self._printed = 0
        self._last = ""

    def add(self, text: str) -> None:
        """Print the next part."""
        if not text or not self.open:
            return
        self._printed += len(text)
        self._last = text[-1]
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            self.open = False
            drop(sys.stdout)
            if not isinstance(error, BrokenPipeError):
                raise UserError(
                    f"The text cannot be written: {reason(error)}.", "Send standard output elsewhere."
                ) from error

    def finish(self, text: str) -> None:
        """Print what is missing of the whole `text`, and end the line."""
        self.add(text[self._printed :])
        if self._last != "\n":
            self.add("\n")
