"""Earlier measurements: found among the journals, and offered to be continued, shown or discarded."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.ui.compare.works.journals import Earlier, Journals
from app.ui.compare.works.offer import ResumeStrip


class EarlierRuns(QObject):
    """Offers one earlier measurement at a time."""

    wanted = Signal(object)
    """Continue this Earlier, or show it where it is complete."""

    def __init__(self, folder: Path, parent: QObject) -> None:
        super().__init__(parent)
        self.journals = Journals(folder)
        self.offer = ResumeStrip()
        self.offer.accepted.connect(self._accept)
        self.offer.dismissed.connect(self._dismiss)
        self.offered: Earlier | None = None

    def offer_any(self) -> None:
        """Offer an interrupted measurement, or otherwise the latest one to look at."""
        self._offer(self.journals.broken_off() or self.journals.latest())

    @Slot()
    def offer_broken_off(self) -> None:
        """After a measurement, offer one that can be continued: the same or another."""
        self._offer(self.journals.broken_off())

    def hide(self) -> None:
        """Offer nothing."""
        self._offer(None)

    def _offer(self, earlier: Earlier | None) -> None:
        self.offered = earlier
        if earlier is None:
            self.offer.hide()
        else:
            self.offer.show_earlier(earlier)

    @Slot()
    def _accept(self) -> None:
        if self.offered is not None:
            self.wanted.emit(self.offered)

    @Slot()
    def _dismiss(self) -> None:
        if self.offered is not None and not self.offered.complete:
            self.journals.discard(self.offered)
        self.hide()
