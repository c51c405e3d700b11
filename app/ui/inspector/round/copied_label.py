"""The text that a draft was copied from, marked where it stands."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QLabel

from app.engine.explain.copied import Copied
from app.engine.fates import Origin
from app.ui.theme import Theme

_NEWLINE = "↵"


class CopiedLabel(QLabel):
    """An excerpt of the conversation: what matched is underlined, what was copied has a ground."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._copied: Copied | None = None
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setAccessibleName("Copied text")
        theme.changed.connect(self._show)
        self._show()

    def show_copied(self, copied: Copied | None) -> None:
        """Show another excerpt; None, or one that was not found, hides it."""
        self._copied = copied
        self._show()

    @Slot()
    def _show(self) -> None:
        copied, palette = self._copied, self._theme.palette
        self.setVisible(copied is not None and copied.places > 0)
        if copied is None:
            return
        self.setFont(self._theme.mono(-1))
        ground = palette.soft(palette.fate(Origin.ACCEPTED))
        self.setText(
            f'<div style="white-space: pre-wrap; color: {palette.secondary}">…{_shown(copied.before)}'
            f'<span style="color: {palette.text}; text-decoration: underline">{_shown(copied.matched)}</span>'
            f'<span style="color: {palette.text}; background: {ground}">{_shown(copied.copied)}</span>'
            f"{_shown(copied.after)}…</div>"
        )
        self.setAccessibleDescription(
            f"After {copied.matched!r}, as before this draft, stands {copied.copied!r}."
        )


def _shown(text: str) -> str:
    """A text of strangers as HTML: its characters, none of its markup."""
    return escape(text.replace("\n", _NEWLINE))
