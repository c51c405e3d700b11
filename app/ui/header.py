"""The strip on top: the pair, the strategy and the sampling as chips, and what can be done at once."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Slot
from PySide6.QtGui import QIcon, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.ui.icons import IconButton, icon, pixmap
from app.ui.panels.chip import Chip
from app.ui.panels.model_panel import FileChooser, ModelPanel
from app.ui.panels.panel_button import PanelButton
from app.ui.panels.popover import Popover
from app.ui.panels.presets_panel import PresetsPanel
from app.ui.panels.sampling_panel import SamplingPanel
from app.ui.panels.strategy_panel import WIDTH as STRATEGY_WIDTH
from app.ui.panels.strategy_panel import StrategyPanel
from app.ui.theme import Theme
from app.ui.theme.style import set_role

GAP = 8


def chip_widths(widths: Sequence[tuple[int, int, int, int]], room: int) -> list[int]:
    """Share `room` among the chips target, draft, sampling and strategy.

    Each has a width that it wants, one without its detail, one without its caption and a least one.
    Details go first, one after the other, then captions; then the two names are cut, then the sampling,
    and the strategy last. The sum exceeds the room only where all have their least.
    """
    given = [one[0] for one in widths]
    for stage in (1, 2):
        for at, one in enumerate(widths):
            if sum(given) > room:
                given[at] = one[stage]
    for group in ((0, 1), (2,), (3,)):
        while sum(given) > room:
            at = max(group, key=lambda one: given[one] - widths[one][3])
            if given[at] <= widths[at][3]:
                break
            given[at] -= 1
    return given


class Header(QWidget):
    """Chips with their panels, and buttons. The window fills and connects them."""

    def __init__(self, theme: Theme, choose_file: FileChooser) -> None:
        super().__init__()
        self._theme = theme
        self.target_panel = ModelPanel(theme, "target", BUNDLED_TARGET, choose_file)
        self.draft_panel = ModelPanel(theme, "draft", BUNDLED_DRAFT, choose_file)
        self.strategy_panel = StrategyPanel(theme)
        self.sampling_panel = SamplingPanel(theme)
        self.target = self._chip("target", self.target_panel, self.target_panel.foot)
        self.draft = self._chip("draft", self.draft_panel, self.draft_panel.foot)
        self.strategy = Chip(theme, "strategy", mono=True)
        self._open_strategies()
        self.sampling = self._chip("sampling", self.sampling_panel)
        self.presets_panel = PresetsPanel(theme)
        self.presets = PanelButton(theme, "bookmark", "Presets", Popover(theme, self.presets_panel))
        self.chips = (self.target, self.draft, self.sampling, self.strategy)  # in the order of giving way
        self._arrow = QLabel()
        self.sidebar = IconButton(theme, "sidebar", "Chats (Ctrl+B)")
        self.instruments = IconButton(theme, "compare", "Instruments (Ctrl+I)")
        self.clear = WordOrIcon(theme, "trash", "Clear")
        self.clear.setToolTip(
            "Put this chat into the trash and begin a new one. Undo is in the list of chats."
        )
        self.regenerate = WordOrIcon(theme, "refresh", "Regenerate")
        self.regenerate.setToolTip("Answer the last message once more (Ctrl+R)")
        self.stop = WordOrIcon(theme, "stop", "Stop", primary=True)
        self.stop.setToolTip("Stop the answer (Esc)")

        row = self._row = QHBoxLayout(self)
        row.setSpacing(GAP)
        row.addWidget(self.sidebar)
        for part in (self.target, self._arrow, self.draft, self.strategy, self.sampling, self.presets):
            row.addWidget(part)
        row.addStretch(1)
        for button in (self.clear, self.regenerate, self.stop, self.instruments):
            row.addWidget(button)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _chip(self, caption: str, panel: QWidget, foot: QWidget | None = None) -> Chip:
        chip = Chip(self._theme, caption)
        chip.set_popover(Popover(self._theme, panel, foot=foot))
        return chip

    def renew_strategy_panel(self) -> None:
        """Other strategies are known than before: a new panel, for the window to fill and connect."""
        self.strategy_panel = StrategyPanel(self._theme)
        self._open_strategies()

    def _open_strategies(self) -> None:
        self.strategy.set_popover(Popover(self._theme, self.strategy_panel, STRATEGY_WIDTH))

    def set_busy(self, busy: bool) -> None:
        """Stop stands where Regenerate stood: one place for the one thing to do."""
        self.stop.setVisible(busy)
        self.regenerate.setVisible(not busy)
        self._fit()

    def set_folded(self, sidebar: bool, instruments: bool) -> None:
        """Offer to bring back what is folded away; what is shown has a button of its own."""
        self.sidebar.setVisible(sidebar)
        self.instruments.setVisible(instruments)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        """As narrow as the window likes: the chips give way."""
        return QSize(0, super().minimumSizeHint().height())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Give every part its width: words of buttons go first, then details, then names are cut."""
        buttons = (self.clear, self.regenerate, self.stop)
        for words in (True, False):
            for button in buttons:
                button.show_words(words)
            others = [self.sidebar, self._arrow, self.presets, *buttons, self.instruments]
            shown = [one for one in others if one.isVisibleTo(self)]
            margins = self._row.contentsMargins()
            room = self.width() - margins.left() - margins.right() - GAP * (len(shown) + 4)
            room -= sum(one.sizeHint().width() for one in shown)
            if words and room >= sum(chip.widths()[1] for chip in self.chips):
                break
        wanted = [chip.widths() for chip in self.chips]
        for chip, one, width in zip(self.chips, wanted, chip_widths(wanted, room), strict=True):
            chip.set_bare(width < one[1])
            if chip.minimumWidth() != width or chip.maximumWidth() != width:
                chip.setFixedWidth(width)

    @Slot()
    def _restyle(self) -> None:
        above = round(10 * self._theme.scale)
        self._row.setContentsMargins(16, above, 16, above)
        side = round(14 * self._theme.scale)
        ratio = self.devicePixelRatio()
        picture = pixmap("arrow-left", self._theme.palette.faint, round(side * ratio))
        picture.setDevicePixelRatio(ratio)
        self._arrow.setPixmap(picture)
        self._arrow.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._fit()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(0, self.height() - 1, self.width(), 1, self._theme.palette.line)


class WordOrIcon(QPushButton):
    """A button that says what it does, or shows it where room is short."""

    def __init__(self, theme: Theme, name: str, words: str, primary: bool = False) -> None:
        super().__init__(words)
        self._theme = theme
        self._name = name
        self._words = words
        self._as_words = True
        self._primary = primary
        self.setAccessibleName(words)
        if primary:
            set_role(self, kind="primary")
        theme.changed.connect(self._refresh)

    def show_words(self, words: bool) -> None:
        """Show the words, or the icon instead."""
        if words != self._as_words:
            self._as_words = words
            set_role(self, shape="" if words else "icon")
            self._refresh()

    @Slot()
    def _refresh(self) -> None:
        colours = self._theme.palette
        side = round(16 * self._theme.scale)
        colour = colours.ground if self._primary else colours.secondary
        self.setText(self._words if self._as_words else "")
        self.setIcon(QIcon() if self._as_words else icon(self._name, colour, colours.faint))
        self.setIconSize(QSize(side, side))
