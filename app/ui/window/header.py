"""The strip on top: pair, strategy and sampling as chips, and buttons. Also the window's look, from the
settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.engine.types import Role
from app.ui.chat.chat_page import ChatPage
from app.ui.pair.model_panel import ModelPanel
from app.ui.pair.server_form import ServerForm
from app.ui.settings.settings_page import SCALES
from app.ui.setup.presets import PresetsPanel
from app.ui.setup.sampling_panel import SamplingPanel
from app.ui.setup.strategy_panel import WIDTH as STRATEGY_WIDTH
from app.ui.setup.strategy_panel import StrategyPanel
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.buttons import PanelButton
from app.ui.widgets.chip import GAP, VALUE_MAX, Chip, ChipRow, chip_widths, widened
from app.ui.widgets.icons import IconButton, LateClicks, icon
from app.ui.widgets.popover import Popover


class Header(ChipRow):
    """Chips with their panels, and buttons. The window fills and connects them."""

    def __init__(self, theme: Theme, servers: Servers) -> None:
        super().__init__(theme)
        self.server_form = ServerForm(theme, servers, "Use it")
        self.target_panel = ModelPanel(theme, Role.TARGET, BUNDLED_TARGET, server_form=self.server_form)
        self.draft_panel = ModelPanel(theme, Role.DRAFT, BUNDLED_DRAFT)
        self.strategy_panel = StrategyPanel(theme)
        self.sampling_panel = SamplingPanel(theme)
        self.target, self.draft = (
            Chip(theme, role, panel, head=panel.head, caption_stays=True)
            for role, panel in ((Role.TARGET, self.target_panel), (Role.DRAFT, self.draft_panel))
        )
        self.strategy = Chip(theme, "strategy", self.strategy_panel, STRATEGY_WIDTH, mono=True)
        self.sampling = Chip(theme, "sampling", self.sampling_panel, least=VALUE_MAX)
        self.presets_panel = PresetsPanel(theme)
        self.presets = PanelButton(
            theme, "bookmark", "Presets", Popover(theme, self.presets_panel, field=self.presets_panel.field)
        )
        self._busy = self._recorded = False
        self.chips = (self.target, self.draft, self.sampling, self.strategy)
        self._arrow = QLabel()
        self.sidebar = IconButton(theme, "sidebar", "Chats (Ctrl+B)")
        self.instruments = IconButton(theme, "compare", "Instruments (Ctrl+I)")
        self.clear = WordOrIcon(theme, "trash", "Clear")
        self.clear.setToolTip("Move this chat to the trash and start a new one. Ctrl+Z undoes it.")
        self.regenerate = WordOrIcon(theme, "refresh", "Regenerate")
        self.regenerate.setToolTip("Answer the last message again (Ctrl+R)")
        self._late = LateClicks(self.regenerate)
        self.stop = WordOrIcon(theme, "stop", "Stop", primary=True)
        self.stop.setToolTip("Stop the answer (Esc)")

        self._buttons = (self.clear, self.regenerate, self.stop)
        self.others = (self.sidebar, self._arrow, self.presets, *self._buttons, self.instruments)
        chips = self.target, self._arrow, self.draft, self.strategy, self.sampling, self.presets
        kit.fill(self.row, self.sidebar, *chips, kit.Spring(1), *self._buttons, self.instruments)
        self._lower = kit.row(kit.Spring(1), spacing=GAP)  # of two rows, where one has too little room
        self._crowded = False
        self.rows.addLayout(self._lower)
        self.restyle()

    def set_busy(self, busy: bool) -> None:
        """Show Stop in place of Regenerate while an answer is being written."""
        if self._busy and not busy:
            self._late.expect()
        self._busy = busy
        self._show_buttons()

    def set_recorded(self, recorded: bool) -> None:
        """Hide the chips of the loaded pair and their buttons while a recording is on the screen."""
        self._recorded = recorded
        for part in (*self.chips, self._arrow, self.presets, self.clear):
            part.setVisible(not recorded)
        self._show_buttons()

    def _show_buttons(self) -> None:
        self.stop.setVisible(self._busy)
        self.regenerate.setVisible(not self._busy and not self._recorded)
        self._go_where_bare()
        self.fit()

    def set_folded(self, sidebar: bool, instruments: bool) -> None:
        """Show buttons that unfold the folded panels; an open panel has its own button to fold it."""
        self.sidebar.setVisible(sidebar)
        self.instruments.setVisible(instruments)
        self._go_where_bare()
        self.fit()

    def _go_where_bare(self) -> None:
        """Hide the strip if it is empty."""
        self.setVisible(any(part.isVisibleTo(self) for part in (*self.chips, *self.others)))

    def share_room(self) -> None:
        """Fit the row: first the buttons lose their words, then the chips their details, then names are cut.
        If even cut names have too little room, there are two rows."""
        shown = [button for button in self._buttons if button.isVisibleTo(self)]
        room = self.room() + sum(
            button.sizeHint().width() - button.width_with(words=True) for button in shown
        )
        words = room >= sum(chip.widths()[1] for chip in self.chips)
        for button in self._buttons:
            button.show_words(words)
        wanted = [chip.widths() for chip in self.chips]
        self._wrap(self.room() < sum(sizes[3] for sizes in wanted))
        if not self._crowded:
            super().share_room()
            return
        none = (0, 0, 0, 0)
        upper = self.room_beside((self.sidebar, self._arrow), 2)
        lower = self.room_beside((self.presets, *self._buttons, self.instruments), 2)
        models = chip_widths([*wanted[:2], none, none], upper)
        others = chip_widths([none, none, *wanted[2:]], lower)[2:]
        models, others = widened(self.chips[:2], models[:2], upper), widened(self.chips[2:], others, lower)
        self.give([*models, *others])

    def _wrap(self, crowded: bool) -> None:
        """Put all but the models in a second row, or back."""
        if crowded == self._crowded:
            return
        self._crowded = crowded
        row, at = (self._lower, 0) if crowded else (self.row, self.row.indexOf(self.draft) + 1)
        parts: tuple[QWidget, ...] = (self.strategy, self.sampling, self.presets)
        for place, part in enumerate(parts, start=at):
            row.insertWidget(place, part)
        for part in (*self._buttons, self.instruments):
            row.addWidget(part)

    def restyle(self) -> None:
        side = round(14 * self._theme.scale)
        arrow = icon("arrow-left", self._theme.palette.faint)
        self._arrow.setPixmap(arrow.pixmap(QSize(side, side), self.devicePixelRatio()))
        self._arrow.setAlignment(Qt.AlignmentFlag.AlignCenter)
        super().restyle()


class WordOrIcon(QPushButton):
    """A button with words, or with an icon if room is short."""

    def __init__(self, theme: Theme, name: str, words: str, primary: bool = False) -> None:
        super().__init__(words)
        self._theme = theme
        self._name = name
        self._words = words
        self._as_words = True
        self._primary = primary
        self._widths: dict[bool, int] = {}
        self.setAccessibleName(words)
        if primary:
            set_role(self, kind="primary")
        theme.changed.connect(self._refresh)

    def width_with(self, words: bool) -> int:
        """The width in pixels with words or with an icon. Measured once, since trying the other form lays out
        the whole row again."""
        if words not in self._widths:
            before = self._as_words
            self.show_words(words)
            self._widths[words] = self.sizeHint().width()
            self.show_words(before)
        return self._widths[words]

    def show_words(self, words: bool) -> None:
        """Show the words, or the icon instead."""
        if words != self._as_words:
            self._as_words = words
            set_role(self, shape="" if words else "icon")
            self._refresh()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.StyleChange:
            self._widths.clear()
        super().changeEvent(event)

    def _refresh(self) -> None:
        colours = self._theme.palette
        side = round(16 * self._theme.scale)
        colour = colours.ground if self._primary else colours.secondary
        self.setText(self._words if self._as_words else "")
        self.setIcon(QIcon() if self._as_words else icon(self._name, colour, colours.faint))
        self.setIconSize(QSize(side, side))


class AppearanceController(QObject):
    """Applies the settings to the Chat place and the theme, and saves what the user changes there."""

    def __init__(self, theme: Theme, page: ChatPage, header: Header, settings: SettingsInUse) -> None:
        super().__init__()
        self.theme = theme
        self._page = page
        self._header = header
        self._settings = settings
        self._acts: dict[str, Callable[[Any], None]] = {
            "theme": theme.set_mode,
            "palette": theme.set_palette,
            "motion": theme.set_motion,
            "text_scale": theme.set_scale,
            "drafts_shown": page.transcript.set_drafts_shown,
            "rendered": page.transcript.set_rendered,
        }
        header.sidebar.clicked.connect(page.toggle_sidebar)
        header.instruments.clicked.connect(page.toggle_instruments)
        page.chats.fold_requested.connect(page.toggle_sidebar)
        page.instruments.fold_requested.connect(page.toggle_instruments)
        page.sidebar_wanted.connect(lambda wanted: settings.change(sidebar_shown=wanted))
        page.instruments_wanted.connect(lambda wanted: settings.change(instruments_shown=wanted))
        page.panels_changed.connect(self._show_folded)
        page.legend.drafts_shown_changed.connect(lambda shown: settings.change(drafts_shown=shown))
        page.legend.rendered_changed.connect(lambda rendered: settings.change(rendered=rendered))
        settings.changed.connect(self._settings_changed)

    def show(self) -> None:
        """Show the Chat place as the settings say."""
        settings = self._settings.now
        self._page.set_sidebar(settings.sidebar_shown)
        self._page.set_instruments(settings.instruments_shown)
        self._page.legend.drafts_shown.setChecked(settings.drafts_shown)
        self._page.legend.rendered.setChecked(settings.rendered)
        self._settings_changed({"drafts_shown", "rendered"})

    def _settings_changed(self, names: set[str]) -> None:
        for name, act in self._acts.items():
            if name in names:
                act(getattr(self._settings.now, name))

    def set_scale(self, scale: float) -> None:
        """Set the text size, as a multiple of the system's."""
        self._settings.change(text_scale=scale)

    def scale_by(self, step: float) -> None:
        """Make the text larger or smaller, within the limits."""
        low, high = SCALES
        self.set_scale(min(high, max(low, round(self.theme.scale + step, 1))))

    def _show_folded(self) -> None:
        self._header.set_folded(self._page.chats.isHidden(), self._page.instruments.isHidden())
