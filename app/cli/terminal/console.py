"""Output on the terminal: UTF-8 in any locale, without errors if the reader has gone.

Names, texts and errors come from files and the network, and may contain terminal commands. All text for
people is made `printable` here, and no other module prints.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol, TextIO

from app.base.files import reason
from app.engine.errors import UserError

PROGRAM = "draftscope"

_PICTURES = {code: 0x2400 + code for code in range(32)} | {0x7F: 0x2421}  # ␀ … ␛ … ␡
_NO_PICTURE = (*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""C1 controls, which terminals obey too; Unicode's line breaks; characters that change a line's direction."""
_TEXT = {**_PICTURES, **dict.fromkeys(_NO_PICTURE, 0xFFFD), ord("\n"): ord("\n"), ord("\t"): ord("\t")}
_LINE = {**_TEXT, ord("\n"): ord(" "), ord("\t"): ord(" ")}


def printable(text: str) -> str:
    """`text` with every control character (except line breaks and tabs) shown as a character of one
    column."""
    return text.translate(_TEXT)


def printable_line(text: str) -> str:
    """`text` in one line: like `printable`, with spaces for line breaks and tabs."""
    return text.translate(_LINE)


def use_utf8() -> None:
    """Make both outputs UTF-8, even in the C locale or a console with a code page."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def put(lines: Iterable[str]) -> None:
    """Print lines on standard output, for people. Raises OSError if no one reads them."""
    print(*map(printable_line, lines), sep="\n")


def hand_over(text: str) -> None:
    """Print text for another program on standard output: unchanged, unless a terminal shows it."""
    print(printable(text) if sys.stdout.isatty() else text)


def say(line: str) -> None:
    """Print one line on standard error."""
    _write(f"{printable_line(line)}\n")


def tell(text: str) -> None:
    """Print lines on standard error, each with its line break."""
    _write(printable(text))


def say_over(line: str) -> None:
    """Replace the line that was last printed like this on standard error, a terminal; "" clears it."""
    _write(f"\r\x1b[K{printable_line(line)[: shutil.get_terminal_size().columns - 1]}")


def _write(text: str) -> None:
    """Write text to standard error, unchanged. Failures are ignored."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def complain(command: str, message: str) -> None:
    """Print one line on standard error: the command and the error."""
    # Messages of llama.cpp and of templates may have line breaks.
    say(f"{command}: {' '.join(message.split())}")


def end_output() -> None:
    """Flush both outputs; failures can no longer be reported, and are ignored."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            drop(stream)


def drop(stream: TextIO) -> None:
    """Discard the rest of an output whose reader has gone: Python would complain at exit."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class AnswerPrinter:
    """Prints an answer on standard output as it comes, as long as it is read.

    A terminal gets it printable, a pipe or a file unchanged. An output that cannot be written (a full disk)
    raises UserError, once.
    """

    def __init__(self) -> None:
        self.open = True  # somebody reads
        self._printed = 0
        self._last = ""
        self._terminal = sys.stdout.isatty()

    def add(self, text: str) -> None:
        """Print the next part."""
        if not text or not self.open:
            return
        self._printed += len(text)
        self._last = text[-1]
        try:
            sys.stdout.write(printable(text) if self._terminal else text)
            sys.stdout.flush()
        except OSError as error:
            self.open = False
            drop(sys.stdout)
            if not isinstance(error, BrokenPipeError):
                raise UserError(
                    f"The text cannot be written: {reason(error)}.", "Send standard output elsewhere."
                ) from error

    def finish(self, text: str) -> None:
        """Print the rest of the whole `text`, and end the line."""
        self.add(text[self._printed :])
        if self._last != "\n":
            self.add("\n")


class Defined(Protocol):
    """A number with a title and a definition."""

    @property
    def title(self) -> str: ...

    @property
    def definition(self) -> str: ...


def wrapped(text: str, indent: int = 0) -> list[str]:
    """Text in lines of a hundred characters, all of them indented."""
    space = " " * indent
    return textwrap.wrap(text, 100, initial_indent=space, subsequent_indent=space)


def definitions(columns: Iterable[Defined]) -> list[str]:
    """The meaning of a table's columns, a line each."""
    return [f"{column.title}: {column.definition}" for column in columns]


def aligned(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """The lines of a table, columns two spaces apart; those named in `right` are aligned to the right."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def row(cells: Sequence[str]) -> str:
        placed = (
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(cells, widths, head, strict=True)
        )
        return "  ".join(placed).rstrip()

    return list(map(row, lines))


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] | None = None
) -> list[str]:
    """Like `aligned`, with a rule below each heading; by default all columns except the first are in
    `right`."""
    rule = ["-" * max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return aligned(head, [rule, *rows], right=head[1:] if right is None else right)
