"""A strip of chips and buttons on top of a place; the chips share the room that the buttons leave."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.widgets.chip import Chip

GAP = 8


def chip_widths(widths: Sequence[tuple[int, int, int, int]], room: int) -> list[int]:
    """Share `room` among four chips, in the order in which they give way.

    Each chip has four widths: all that it wants, without its detail, without its caption, and the least.
    Details are left out first, one after the other, then captions; then the first two chips, which are names,
    are cut, then the third, and last the fourth. The sum exceeds the room only where all have their least
    width.
    """
    given = [wanted[0] for wanted in widths]
    for stage in (1, 2):
        for at, sizes in enumerate(widths):
            if sum(given) > room:
                given[at] = sizes[stage]
    for group in ((0, 1), (2,), (3,)):
        while sum(given) > room:
            at = max(group, key=lambda place: given[place] - widths[place][3])
            if given[at] <= widths[at][3]:
                break
            given[at] -= 1
    return given


class ChipRow(QWidget):
    """Fits its `chips`, in the order of giving way, beside its `others`; a derived class fills the row."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.chips: tuple[Chip, ...] = ()
        self.others: tuple[QWidget, ...] = ()
        self.rows = QVBoxLayout(self)
        self.rows.setSpacing(GAP)
        self.row = QHBoxLayout()
        self.row.setSpacing(GAP)
        self.rows.addLayout(self.row)
        theme.changed.connect(self.restyle)

    def room(self) -> int:
        """Pixels for the chips, beside the others as they are now."""
        shown = [widget for widget in self.others if widget.isVisibleTo(self)]
        margins = self.rows.contentsMargins()
        gaps = GAP * (len(shown) + len(self.chips))
        taken = sum(widget.sizeHint().width() for widget in shown)
        return self.width() - margins.left() - margins.right() - gaps - taken

    def fit(self) -> None:
        """Share the room anew; what is hidden waits until it is shown."""
        if self.isVisible():
            self.share_room()

    def share_room(self) -> None:
        """Give every chip its width."""
        wanted = [chip.widths() for chip in self.chips]
        for chip, sizes, width in zip(self.chips, wanted, chip_widths(wanted, self.room()), strict=True):
            chip.set_bare(width < sizes[1] != sizes[2])
            if chip.minimumWidth() != width or chip.maximumWidth() != width:
                chip.setFixedWidth(width)
        self.rows.activate()  # a frame painted before the event loop lays out would show chips overlap

    def minimumSizeHint(self) -> QSize:
        """No minimum width: the chips give way."""
        return QSize(0, super().minimumSizeHint().height())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.fit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.fit()

    @Slot()
    def restyle(self) -> None:
        """Apply size and colours of the theme."""
        above = round(10 * self._theme.scale)
        self.rows.setContentsMargins(16, above, 16, above)
        self.fit()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(0, self.height() - 1, self.width(), 1, self._theme.palette.line)
