"""A place that is made when it is first opened, so that the window does not wait for it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, QThread
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from app.base.files import reason
from app.ui.widgets import kit


class PlaceWidget(QWidget):
    """A place: the widget that fills the window beside the rail."""

    def close_place(self) -> None:
        """Before the window closes: end what the place has running."""


class LazyPlace(PlaceWidget):
    """A place, made when it is first shown. Modules that are slow to import are imported on a thread."""

    def __init__(self, title: str, make: Callable[[], PlaceWidget], modules: Sequence[str] = ()) -> None:
        """`make` makes the place, on this thread, once `modules` are imported."""
        super().__init__()
        self._title = title
        self._make = make
        self.place: PlaceWidget | None = None
        self._closed = False
        self._imports = _Imports(modules, self)
        self._imports.finished.connect(self._open)
        self._words = kit.label("Opening…" if modules else "", "secondary", plain=True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        kit.column(self._words, on=self)

    @property
    def words(self) -> str:
        """The text shown instead of the place."""
        return self._words.text()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.place is not None or self._imports.isRunning() or self._imports.isFinished():
            return
        if self._imports.modules:
            self._imports.start()
        else:
            self._open()

    def _open(self) -> None:
        if self._closed:
            return
        try:
            self.place = self._make()
        except ImportError as error:  # a part of the installation is missing
            self._say(f"{error}.\nInstall Draftscope again.")
            return
        except OSError as error:
            self._say(f"{reason(error)}.\nLook at {error.filename or 'Draftscope’s folders'}.")
            return
        self.layout().replaceWidget(self._words, self.place)  # type: ignore[union-attr]
        self.place.show()  # not a moment later, when another place may be on top
        self._words.hide()

    def _say(self, why: str) -> None:
        self._words.setText(f"{self._title} cannot be opened: {why}")

    def close_place(self) -> None:
        """Before the window closes: end what the place has running."""
        self._closed = True
        self._imports.wait()
        if self.place is not None:
            self.place.close_place()


class _Imports(QThread):
    """Imports modules, which may take some seconds from a cold disk."""

    def __init__(self, modules: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.modules = modules

    def run(self) -> None:
        with contextlib.suppress(ImportError):  # reported where the place is made
            for module in self.modules:
                importlib.import_module(module)
