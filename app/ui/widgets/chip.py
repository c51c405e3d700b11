"""A chip: what is in use, always visible, and the way to change it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring, hover
from app.ui.widgets import kit
from app.ui.widgets.access import NO_MORE
from app.ui.widgets.labels import as_text
from app.ui.widgets.popover import WIDTH, Popover

PADDING = 12
_LINE_GAP = 8
_FOLDER = re.compile(r"([A-Za-z]:|~)?[/\\]")
VALUE_MAX = 300  # wider values are cut, if the row has no room to spare; their tooltip is not
VALUE_LEAST = 76  # the same without a caption, in a row of chips that shares its room
VALUE_MIN = 112  # narrower ones are never cut; not scaled, or large text would not fit a window

Panel = TypeVar("Panel", bound=QWidget)


class Chip(QAbstractButton, Generic[Panel]):
    """A caption, a strong value and a detail in one line; checked while its panel is open.

    If there is too little room, the detail is left out first, then the value is cut.
    """

    def __init__(
        self,
        theme: Theme,
        caption: str,
        panel: Panel,
        width: int = WIDTH,
        *,
        head: QWidget | None = None,
        mono: bool = False,
        caption_stays: bool = False,
        least: int = VALUE_LEAST,
    ) -> None:
        """`panel` opens below the chip, `width` pixels wide at text scale 1, with `head` above it. `mono`
        shows the value in the font for code, as a strategy spec wants it. With `caption_stays`, a narrow row
        cuts the value instead of the caption: a model's name does not say whether it is target or draft. A
        value up to `least` pixels wide, at text scale 1, is only cut if all chips have their least width."""
        super().__init__()
        self._least = least
        self._caption_stays = caption_stays
        self._theme = theme
        self._caption = caption
        self._mono = mono
        self._value = ""
        self._detail = ""
        self._words = ""
        self._alert = False
        self._unused = ""
        self._bare = False
        self.panel = panel
        self.popover = Popover(theme, panel, width, head=head)
        self.popover.open_by(self)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._refresh)

    def set_text(self, value: str, detail: str = "", full: str = "") -> None:
        """Show what is in use; `full` is the complete detail, if that is too long for a chip."""
        words = " ".join(part for part in (self._caption, value, full or detail) if part)
        if (value, detail, words) == (self._value, self._detail, self._words):
            return
        self._value, self._detail, self._words = value, detail, words
        self._tell()
        self._refresh()

    def _tell(self) -> None:
        """Set the tooltip and what a screen reader says."""
        more = ": does not work with these settings" if self._alert else ""
        more += f"\n{self._unused}" if self._unused else ""
        self.setToolTip(as_text(self._words + more))
        # A reader need not hear a file's folder.
        said = " · ".join(part for part in self._words.split(" · ") if not _FOLDER.match(part))
        self.setAccessibleName(said + more)
        self.setAccessibleDescription(NO_MORE)

    def set_alert(self, alert: bool) -> None:
        """Mark the choice as one that does not work; the panel says why."""
        if alert != self._alert:
            self._alert = alert
            self._tell()
            self.update()

    def set_unused(self, why: str) -> None:
        """Dim the chip if its choice has no effect at the moment, and say why; "" if it has one."""
        if why != self._unused:
            self._unused = why
            self._tell()
            self.update()

    def text_shown(self, width: int) -> tuple[str, str]:
        """The value and the detail as they fit into a chip of that width, in pixels."""
        room = width - self._frame()
        # Both ends of a spec matter, and the number of a temperature; of a model's name the size at its end
        # tells target and draft apart.
        mode = Qt.TextElideMode.ElideLeft if self._caption_stays else Qt.TextElideMode.ElideMiddle
        strong, whole = self._strong(), self._value
        cut = self._metrics(strong).elidedText(whole, mode, self._scaled(VALUE_MAX))
        for value in (whole, cut):
            if self._detail and self._width(strong, value) + self._detail_width() <= room:
                return value, self._detail
        if self._width(strong, whole) > room:
            whole = self._metrics(strong).elidedText(whole, mode, room)
        return whole, ""

    def widths(self) -> tuple[int, int, int, int]:
        """Four widths in pixels: with everything, without the detail, also without the caption, and the
        least."""
        full = self._full_width()
        plain = full - self._detail_width()
        caption = self._caption_width()
        bare = plain if self._caption_stays else plain - caption
        value = min(self._width(self._strong(), self._value), self._scaled(self._least))
        return full, plain, bare, min(bare, 2 * self._pad() + value + self._caption_stays * caption)

    @property
    def cut(self) -> int:
        """The pixels by which the value is wider than a chip asks for."""
        return max(self._width(self._strong(), self._value) - self._scaled(VALUE_MAX), 0)

    def set_bare(self, bare: bool) -> None:
        """Leave the caption out, if there is too little room; the tooltip still has it."""
        if bare != self._bare:
            self._bare = bare
            self._refresh()

    def sizeHint(self) -> QSize:
        height = self._metrics(self._strong()).height() + self._scaled(14)
        return QSize(self._full_width() - (self._caption_width() if self._bare else 0), height)

    def minimumSizeHint(self) -> QSize:
        value = min(self._width(self._strong(), self._value), VALUE_MIN)
        return QSize(self._frame() + value, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        active = self.isChecked() or self.isDown()
        painter.setBrush(QColor(hover(colours) if active or self.underMouse() else colours.ground))
        border = colours.error if self._alert else colours.edge
        thickness = 1.0
        if ring_shown(self):
            border, thickness = focus_ring(colours), 2.0
        # Broken, not just another colour, where the choice does not work.
        line = Qt.PenStyle.DashLine if self._alert else Qt.PenStyle.SolidLine
        painter.setPen(QPen(QColor(border), thickness, line))
        inset = thickness / 2
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), 8.0, 8.0)
        value, detail = self.text_shown(self.width())
        left = self._pad()
        if not self._bare:
            left = self._draw(painter, left, self._small(), colours.secondary, self._caption)
        strong = colours.secondary if self._unused else colours.text
        left = self._draw(painter, left, self._strong(), strong, value)
        self._draw(painter, left, self._small(), colours.secondary, detail)

    def enterEvent(self, event: object) -> None:
        self.update()

    def leaveEvent(self, event: object) -> None:
        self.update()

    def _refresh(self) -> None:
        self.updateGeometry()
        self.update()

    def _draw(self, painter: QPainter, left: int, font: QFont, colour: str, text: str) -> int:
        """Draw one part and return where the next one starts."""
        if not text:
            return left
        width = self._width(font, text)
        painter.setFont(font)
        painter.setPen(QColor(colour))
        place = QRect(left, 0, width + 2, self.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        return left + width + self._gap()

    def _full_width(self) -> int:
        value = min(self._width(self._strong(), self._value), self._scaled(VALUE_MAX))
        return 2 * self._pad() + self._caption_width() + value + self._detail_width()

    def _detail_width(self) -> int:
        return self._gap() + self._width(self._small(), self._detail) if self._detail else 0

    def _frame(self) -> int:
        return 2 * self._pad() + (0 if self._bare else self._caption_width())

    def _caption_width(self) -> int:
        return self._width(self._small(), self._caption) + self._gap()

    def _small(self) -> QFont:
        return self._theme.sans(-1)

    def _strong(self) -> QFont:
        if self._mono:
            return self._theme.mono()
        return self._theme.sans(0.5, QFont.Weight.Medium)

    def _metrics(self, font: QFont) -> QFontMetrics:
        return QFontMetrics(font, self)

    def _width(self, font: QFont, text: str) -> int:
        return self._metrics(font).horizontalAdvance(text)

    def _scaled(self, pixels: int) -> int:
        return round(pixels * self._theme.scale)

    def _pad(self) -> int:
        return self._scaled(PADDING)

    def _gap(self) -> int:
        return self._scaled(_LINE_GAP)


GAP = 8


def chip_widths(widths: Sequence[tuple[int, int, int, int]], room: int) -> list[int]:
    """Share `room` among four chips, in the order in which they give way.

    Each chip has four widths: with everything, without its detail, also without its caption, and the least.
    Details are left out first, one by one, then captions. Then the first two chips, which are names, are cut,
    then the third, and last the fourth. If all have their least width, all are cut alike.
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
    return [width * max(room, 0) // sum(given) for width in given] if sum(given) > room else given


def widened(chips: Sequence[Chip[Any]], widths: Sequence[int], room: int) -> list[int]:
    """The widths, with values longer than VALUE_MAX whole if the `room` that is left is enough."""
    given = list(widths)
    for at, chip in enumerate(chips):
        if given[at] >= chip.widths()[0] and sum(given) + chip.cut <= room:
            given[at] += chip.cut
    return given


class ChipRow(QWidget):
    """Fits its `chips` beside its `others`; chips give way in their order. A derived class fills the row."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.chips: tuple[Chip[Any], ...] = ()
        self.others: tuple[QWidget, ...] = ()
        self.row = kit.row(spacing=GAP)
        self.rows = kit.column(self.row, spacing=GAP, on=self)
        kit.ground(self, "chips")
        theme.changed.connect(self.restyle)

    def room(self) -> int:
        """Pixels for the chips, beside the others as they are now."""
        return self.room_beside(self.others, len(self.chips))

    def room_beside(self, others: Sequence[QWidget], chips: int) -> int:
        """Pixels for this many chips in a row with others."""
        shown = [widget for widget in others if widget.isVisibleTo(self)]
        margins = self.rows.contentsMargins()
        gaps = GAP * (len(shown) + chips)
        taken = sum(widget.sizeHint().width() for widget in shown)
        return self.width() - margins.left() - margins.right() - gaps - taken

    def fit(self) -> None:
        """Share the room again; if the row is hidden, once it is shown."""
        if self.isVisible():
            self.share_room()

    def share_room(self) -> None:
        """Give every chip its width."""
        room = self.room()
        self.give(widened(self.chips, chip_widths([chip.widths() for chip in self.chips], room), room))

    def give(self, widths: Sequence[int]) -> None:
        """Set the widths of the chips, in pixels."""
        for chip, width in zip(self.chips, widths, strict=True):
            sizes = chip.widths()
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

    def restyle(self) -> None:
        """Apply size and colours of the theme."""
        above = round(10 * self._theme.scale)
        self.rows.setContentsMargins(16, above, 16, above)
        self.fit()
        self.update()
