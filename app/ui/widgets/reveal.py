"""Scrolling to a control."""

from __future__ import annotations

from PySide6.QtWidgets import QScrollArea, QWidget

MARGIN = 80  # pixels of what lies around it


def reveal(control: QWidget) -> None:
    """Bring a control into view, where it lies in something that scrolls."""
    above = control.parentWidget()
    while above is not None and not isinstance(above, QScrollArea):
        above = above.parentWidget()
    if above is not None:
        above.ensureWidgetVisible(control, 0, MARGIN)
