"""The look of the window: colours, motion, text size, shown and folded panels; read from the settings and
saved there."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.ui.chat.chat_page import ChatPage
from app.ui.settings.settings_page import SCALES
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.theme import Theme
from app.ui.window.header import Header


class AppearanceController(QObject):
    """Applies the settings to the Chat place and the theme, and saves what the user changes there."""

    def __init__(self, theme: Theme, page: ChatPage, header: Header, settings: SettingsInUse) -> None:
        super().__init__()
        self.theme = theme
        self._page = page
        self._header = header
        self._settings = settings
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
        settings, transcript = self._settings.now, self._page.transcript
        if "theme" in names:
            self.theme.set_mode(settings.theme)
        if "palette" in names:
            self.theme.set_palette(settings.palette)
        if "motion" in names:
            self.theme.set_motion(settings.motion)
        if "text_scale" in names:
            self.theme.set_scale(settings.text_scale)
        if "drafts_shown" in names:
            transcript.set_drafts_shown(settings.drafts_shown)
        if "rendered" in names:
            transcript.set_rendered(settings.rendered)

    def set_scale(self, scale: float) -> None:
        """Set the text size, as a multiple of the system's."""
        self._settings.change(text_scale=scale)

    def scale_by(self, step: float) -> None:
        """Make the text larger or smaller, within the limits."""
        low, high = SCALES
        self.set_scale(min(high, max(low, round(self.theme.scale + step, 1))))

    def _show_folded(self) -> None:
        self._header.set_folded(self._page.chats.isHidden(), self._page.instruments.isHidden())
