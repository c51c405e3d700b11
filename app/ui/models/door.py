"""What stands in for the Models place until it is first opened."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QThread, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.base.files import reason

if TYPE_CHECKING:
    from app.ui.models.place import ModelsPlace

ROOMS = ("app.hub.catalogue", "app.hub.downloads", "app.hub.library", "app.hub.search", "app.hub.token")

UseModels = Callable[[str | None, str | None], None]
"""Load (target, draft) into the chat and go there. None keeps what is in use, "" takes the draft away.
Raises UserError."""
ModelsInUse = Callable[[], tuple[str, str]]
"""The files that the chat uses: target, and draft or ""."""
MakeModels = Callable[[UseModels, ModelsInUse, bool], "ModelsPlace"]
"""The last one is whether offline mode is on."""


class _Imports(QThread):
    """The Hub's client takes up to some seconds to import from a cold disk: not on the window's thread."""

    def run(self) -> None:
        with contextlib.suppress(ImportError):  # told where the place is built
            for room in ROOMS:
                importlib.import_module(room)


class ModelsDoor(QWidget):
    """Opens the place when it is first shown; the window does not wait for it."""

    offline_changed = Signal(bool)
    opened = Signal()

    def __init__(self, build: Callable[[], ModelsPlace]) -> None:
        """`build` makes the place, on this thread, once its imports are done."""
        super().__init__()
        self._build = build
        self.place: ModelsPlace | None = None
        self._imports = _Imports(self)
        self._imports.finished.connect(self._open)
        self._closed = False
        self._words = QLabel("Opening…")
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setProperty("role", "secondary")
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._words)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.place is None and not self._imports.isRunning() and not self._imports.isFinished():
            self._imports.start()

    @Slot()
    def _open(self) -> None:
        if self._closed:
            return
        try:
            self.place = self._build()
        except ImportError as error:  # a part of the installation is missing
            self._words.setText(f"The models cannot be opened: {error}.\nInstall Draftscope again.")
            return
        except OSError as error:
            where = error.filename or "Draftscope's folders"
            self._words.setText(f"The models cannot be opened: {reason(error)}.\nLook at {where}.")
            return
        self.place.offline_changed.connect(self.offline_changed)
        self.layout().replaceWidget(self._words, self.place)  # type: ignore[union-attr]
        self.place.show()  # not a moment later, when another place may be on top
        self._words.deleteLater()
        self.opened.emit()

    @Slot(bool)
    def set_offline(self, offline: bool) -> None:
        """Switch offline mode; `offline_changed` tells it, whether the place is open or not."""
        if self.place is not None:
            self.place.session.set_offline(offline)
        else:
            self.offline_changed.emit(offline)

    @Slot()
    def look_for_token(self) -> None:
        """The Hub's token was changed elsewhere."""
        if self.place is not None:
            self.place.session.token_changed.emit()

    def close_models(self) -> None:
        """Before the window goes: end what the place has running."""
        self._closed = True
        self._imports.wait()
        if self.place is not None:
            self.place.close_models()
