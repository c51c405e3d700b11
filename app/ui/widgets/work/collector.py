"""Python's garbage collector, kept on the window's thread."""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer, Slot

_INTERVAL = 500  # milliseconds between two looks


class Collector(QObject):
    """Collects on the thread that it lives on, and nowhere else.

    Left to itself Python collects on whichever thread makes the next object. Qt objects in the garbage are
    destroyed there, and the process crashes where the window's thread has an event or a timer for one.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self, interval=_INTERVAL)
        timer.timeout.connect(self.collect_due)
        timer.start()

    @Slot()
    def collect_due(self) -> None:
        """Collect the oldest generation whose turn it is, by Python's own counts."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return
