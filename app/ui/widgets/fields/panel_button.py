"""An icon that opens a panel, where there is no room for a chip."""

from __future__ import annotations

from PySide6.QtCore import Slot

from app.ui.theme import Theme
from app.ui.widgets.icons import IconButton
from app.ui.widgets.popover import Popover


class PanelButton(IconButton):
    """Checked while its panel is open."""

    def __init__(self, theme: Theme, name: str, tooltip: str, popover: Popover) -> None:
        super().__init__(theme, name, tooltip)
        self._popover = popover
        popover.setParent(self)  # deleted with the button; once opened it belongs to the window
        popover.closed.connect(self._closed)
        self.setCheckable(True)
        self.clicked.connect(self._toggle)

    @Slot()
    def close_panel(self) -> None:
        """Close the panel if it is open."""
        self._popover.close_panel()

    @Slot(bool)
    def _toggle(self, opened: bool) -> None:
        if opened:
            self._popover.open_below(self)
        else:
            self._popover.close_panel()

    @Slot()
    def _closed(self) -> None:
        self.setChecked(False)
