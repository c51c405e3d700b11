"""Opens trace files: a thread reads them, and the window continues meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.engine.errors import UserError
from app.engine.record.trace import Salvaged, Trace, salvage_in_parts
from app.ui.state.chat_side import Tell
from app.ui.state.folds import RoundFolds
from app.ui.widgets import kit
from app.ui.widgets.background import Askers, Query
from app.ui.widgets.labels import ElidedLabel

_SOON = 100  # milliseconds: about a file that is open by then nothing is said


class _FoldedTrace(NamedTuple):
    """The readable part of a trace file, and the folds of its rounds."""

    found: Salvaged
    folds: RoundFolds


class OpeningStrip(QWidget):
    """Names the file that is being opened."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ElidedLabel()
        self.cancel = kit.button("Cancel", kind="flat")
        kit.row((self.words, 1), self.cancel, margins=(24, 8, 16, 8), on=self)
        self.hide()


class TraceOpener(QObject):
    """Reads a trace file and then shows it. If a different file is requested meanwhile, that is read
    instead."""

    reading = Signal(bool)  # whether a file is being read

    def __init__(self, show: Callable[[Trace, Path, RoundFolds], None]) -> None:
        super().__init__()
        self.strip = OpeningStrip()
        self.strip.cancel.clicked.connect(self.cancel)
        self._show = show
        self._askers = Askers()
        self._query: Query[_FoldedTrace | None] | None = None
        self._late = QTimer(self, singleShot=True, interval=_SOON)
        self._late.timeout.connect(self.strip.show)

    @property
    def opening(self) -> bool:
        """Whether a file is being read."""
        return self._query is not None

    def open(self, file: Path, tell: Tell) -> None:
        """Show a file as far as it can be read; `tell` receives what is damaged in it."""
        self.cancel()
        self._query = Query(
            self._askers, partial(self._take, file, tell), lambda error: self._failed(error, tell)
        )
        self._query.ask_each(partial(_read, file))
        self.reading.emit(True)
        self.strip.words.set_text(f"Opening {file.name}…")
        self._late.start()

    def cancel(self) -> None:
        """Read no further; what is on the screen stays."""
        if self._query is not None:
            self._query.drop()
            self.reading.emit(False)
        self._query = None
        self._late.stop()
        self.strip.hide()

    def close(self) -> None:
        """End the threads; nothing is shown afterwards."""
        self.cancel()
        self._askers.close()

    def _failed(self, error: UserError, tell: Tell) -> None:
        self.cancel()
        tell(error)

    def _take(self, file: Path, tell: Tell, read: _FoldedTrace | None) -> None:
        """Show what was read; None says only that reading continues."""
        if read is None:
            return
        self.cancel()
        trace, damage = read.found.trace, read.found.damage
        if trace is not None:
            self._show(trace, file, read.folds)
        if damage is not None:
            hint = damage.hint if trace is None else "Everything before that is shown."
            tell(UserError(damage.message, hint))


def _read(file: Path) -> Iterator[_FoldedTrace | None]:
    """Read a trace file; None marks each pause, in which reading can be ended."""
    found = Salvaged()
    for part in salvage_in_parts(file):
        found = part
        yield None
    yield _FoldedTrace(found, RoundFolds.of(found.trace.rounds if found.trace is not None else ()))
