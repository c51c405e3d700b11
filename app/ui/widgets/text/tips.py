"""Tooltips of texts that come from files, models and the Hub."""

from __future__ import annotations

from html import escape

from PySide6.QtGui import Qt


def as_text(words: str) -> str:
    """A tooltip that shows exactly these words. Qt treats text that looks like HTML as HTML: a file name
    could pose as another one, or load a picture."""
    return f'<p style="white-space:pre-wrap">{escape(words)}</p>' if Qt.mightBeRichText(words) else words
