"""Tooltips of texts that come from files, models and the Hub."""

from __future__ import annotations

from html import escape

from PySide6.QtGui import Qt


def as_text(words: str) -> str:
    """A tooltip that shows these very words. Qt takes for HTML what looks like it: a file name could hide
    behind another one, or have a picture read."""
    return f'<p style="white-space:pre-wrap">{escape(words)}</p>' if Qt.mightBeRichText(words) else words
