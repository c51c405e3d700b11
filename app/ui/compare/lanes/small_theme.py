"""The theme with smaller letters, for several answers side by side."""

from __future__ import annotations

from PySide6.QtGui import QFont

from app.ui.theme.following import FollowingTheme

STEP = 1.5  # points


class SmallTheme(FollowingTheme):
    """A theme with smaller letters that follows another theme in everything else."""

    def sans(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._theme.sans(step - STEP, weight)

    def mono(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._theme.mono(step - STEP, weight)
