"""Opens trace files: another thread reads them, and the window goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.engine.errors import UserError
from app.engine.record.trace import Salvaged, Trace, salvage_in_parts
from app.ui.state.chat_side import Tell
from app.ui.state.mailbox import Mailbox, call_each
from app.ui.theme.style import set_role
from app.ui.widgets.text.elided import ElidedLabel
from app.ui.widgets.work.background import Askers, Query

_SOON = 100  # milliseconds: about a file that is open by then nothing is said


class OpeningStrip(QWidget):
    """Names the file that is being opened."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ElidedLabel()
        self.cancel = QPushButton("Cancel")
        set_role(self.cancel, kind="flat")
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 8, 16, 8)
        row.addWidget(self.words, 1)
        row.addWidget(self.cancel)
        self.hide()


class TraceOpener(QObject):
    """Reads a trace file and then shows it; a file that is asked for meanwhile takes its place."""

    def __init__(self, show: Callable[[Trace, Path], None]) -> None:
        super().__init__()
        self.strip = OpeningStrip()
        self.strip.cancel.clicked.connect(self.cancel)
        self._show = show
        self._askers: Askers | None = None  # threads, from the first file on
        self._query: Query[Salvaged] | None = None
        self._late = QTimer(self, singleShot=True, interval=_SOON)
        self._late.timeout.connect(self.strip.show)

    @property
    def opening(self) -> bool:
        """Whether a file is being read."""
        return self._query is not None

    def open(self, file: Path, tell: Tell) -> None:
        """Show a file as far as it can be read; `tell` is told what is damaged in it."""
        self.cancel()
        if self._askers is None:
            self._askers = Askers(Mailbox(call_each))
        parts: list[Salvaged] = []
        self._query = Query(self._askers, parts.append, tell, lambda: self._opened(file, tell, parts))
        self._query.ask_each(partial(salvage_in_parts, file))
        self.strip.words.set_text(f"Opening {file.name}…")
        self._late.start()

    @Slot()
    def cancel(self) -> None:
        """Read no further; what is on the screen stays."""
        if self._query is not None:
            self._query.drop()
        self._query = None
        self._late.stop()
        self.strip.hide()

    def close(self) -> None:
        """End the threads; nothing is shown afterwards."""
        self.cancel()
        if self._askers is not None:
            self._askers.mailbox.close()
            self._askers.close()

    def _opened(self, file: Path, tell: Tell, parts: list[Salvaged]) -> None:
        self.cancel()
        if not parts:
            return  # reading failed, which was told
        found = parts[-1]
        if found.trace is None:
            assert found.damage is not None
            tell(found.damage)
            return
        self._show(found.trace, file)
        if found.damage is not None:
            tell(UserError(found.damage.message, "Everything before that is shown."))
