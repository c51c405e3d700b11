"""A plot with its title row: name, definition, and its main number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QFont
from PySide6.QtWidgets import QLabel

from app.ui.instruments.canvas import Canvas
from app.ui.instruments.styles import dress
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.kit import announce
from app.ui.widgets.labels import GivingLabel
from app.ui.widgets.plot import Plot
from app.ui.widgets.words import NONE

if TYPE_CHECKING:
    from app.ui.instruments.view import PlotView

_NOTICE_MS = 6000
_KEYS = "Left and Right read out single rounds."


class PlotCard(Plot):
    """The common part of the three plots. A subclass says what it draws, reads out and exports."""

    name = ""
    definition = ""
    tooltip = ""
    empty = ""
    """Shown before the first answer: what will appear here."""
    none = ""
    """Shown if the strategy drafts nothing, so the plot would be empty."""
    untold = ""
    """Shown if the server does not report what happened to its drafts."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.saved.connect(lambda name: self._notify(f"Saved {name}."))
        self.failed.connect(lambda error: self._notify(str(error)))
        self.answer = AnswerModel()  # the answer that is drawn
        self.title = QLabel(self.name)
        self.note = GivingLabel(self.definition)
        self.value = QLabel()
        self.value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.show_value(NONE)
        for label in (self.title, self.note, self.value):
            label.setToolTip(self.tooltip)
        self.canvas = Canvas(theme)
        self.canvas.setAccessibleName(f"{self.name}, plot")
        self.canvas.setAccessibleDescription(_KEYS)
        self.message = self.canvas.message
        self.notice = QLabel(self.canvas)
        self.notice.setWordWrap(True)
        self.notice.hide()
        self.notice.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._notice_timer = QTimer(self, singleShot=True, interval=_NOTICE_MS)
        self._notice_timer.timeout.connect(self.notice.hide)

        row = kit.row(self.title, (self.note, 1), self.value, spacing=8)
        kit.column(row, (self.canvas, 1), spacing=2, on=self)
        self.canvas.set_message(self.empty)
        self.set_up()
        self.apply_theme()

    # ------------------------------------------------------------- what a kind of plot says

    def set_up(self) -> None:
        """Add what is below the plot."""

    def has_values(self) -> bool:
        """Whether there are values, or soon will be: an answer has started. Reading its prompt takes long
        enough to import the plotting code."""
        return self.answer.header is not None

    def add_items(self, view: PlotView) -> None:
        """Prepare the axes, and add what draws the values."""
        raise NotImplementedError

    def colour_items(self) -> None:
        """Give what draws the values the colours of the theme."""
        raise NotImplementedError

    def draw_values(self, first: int, last: int) -> None:
        """Show the rounds from `first` to `last`."""
        raise NotImplementedError

    def show_numbers(self) -> None:
        """Update the title row; called at most ten times a second."""
        raise NotImplementedError

    def read(self, index: int) -> str:
        """What the plot says about one round."""
        raise NotImplementedError

    # ------------------------------------------------------------------------ what they share

    def draw(self, first: int, last: int) -> None:
        """Show the rounds from `first` to `last`; called once a batch."""
        if not self.canvas.has_view and self.has_values():
            self.add_items(self.canvas.view)
            self.apply_theme()
        if self.canvas.has_view:
            self.draw_values(first, last)

    def show_value(self, text: str) -> None:
        """Show the plot's main number; a screen reader says its name before it."""
        self.value.setText(text)
        self.value.setAccessibleName(f"{self.name} {text}".strip())

    def apply_theme(self) -> None:
        palette, theme = self._theme.palette, self._theme
        dress(theme.sans(0, QFont.Weight.Medium), palette.text, self.title)
        dress(theme.sans(4, QFont.Weight.Medium), palette.text, self.value)
        dress(theme.sans(-1.5), palette.secondary, self.note)
        self.notice.setFont(theme.sans(-1.5))
        self.notice.setStyleSheet(
            f"color: {palette.text}; background: {palette.panel}; padding: 4px 6px;"
            f"border: 1px solid {palette.line}; border-radius: 4px;"
        )
        self.canvas.apply_theme()
        if self.canvas.has_view:
            self.colour_items()

    def read_out(self, index: int | None) -> None:
        """Show the values of a round below the plot; None ends it."""
        self.canvas.set_reading("" if index is None or self.message.text() else self.read(index))

    def read_aloud(self, index: int) -> None:
        """Read values out for the keyboard, so that a screen reader says them too."""
        self.read_out(index)
        self.canvas.setAccessibleDescription(self.canvas.reading or _KEYS)
        announce(self.canvas, self.canvas.reading)

    # ------------------------------------------------------------------------------- exporting

    def has_rows(self) -> bool:
        return self.answer.last >= self.answer.start

    def picture(self) -> bytes:
        """The plot with its title row."""
        self.read_out(None)
        marked = self.canvas.marked
        self.canvas.mark(None)
        self.notice.hide()
        picture = super().picture()
        self.canvas.mark(marked)
        return picture

    def _notify(self, text: str) -> None:
        """Show the outcome of an export over the plot for a while."""
        plot = self.canvas.plot_rect().toRect()
        self.notice.setText(text)
        self.notice.setFixedWidth(plot.width())
        self.notice.adjustSize()
        self.notice.move(plot.topLeft())
        self.notice.show()
        self._notice_timer.start()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.open_menu(event)
