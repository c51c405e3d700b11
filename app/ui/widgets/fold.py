"""Contents that unfold below their own title."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.icons import icon


class FoldButton(QPushButton):
    """A title with a chevron that shows whether the contents are visible; `toggled` reports it."""

    def __init__(self, theme: Theme, title: str = "", parent: QWidget | None = None) -> None:
        super().__init__(title, parent)
        self._theme = theme
        self.setProperty("kind", "fold")
        self.setCheckable(True)
        self.toggled.connect(self._refresh)
        theme.changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        name = "chevron-down" if self.isChecked() else "chevron-right"
        self.setIcon(icon(name, self._theme.palette.secondary))
        side = round(14 * self._theme.scale)
        self.setIconSize(QSize(side, side))


class Fold(QWidget):
    """A title to click and, when open, the contents."""

    toggled = Signal(bool)

    def __init__(self, theme: Theme, title: str, contents: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._contents = contents
        self.button = FoldButton(theme, title)
        self.button.toggled.connect(self._toggle)
        kit.column(kit.row(self.button, kit.Spring()), contents, spacing=8, on=self)
        contents.hide()

    @Slot(bool)
    def _toggle(self, opened: bool) -> None:
        self._contents.setVisible(opened)
        self.toggled.emit(opened)
