"""Python's garbage collector, kept on the window's thread."""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer, Slot

_INTERVAL = 500  # milliseconds between two looks
_GROWTH = 1.25
"""A full collection looks at every object, some hundred milliseconds with a long answer on the screen: like
Python, it waits until a quarter more of them has grown old."""


class Collector(QObject):
    """Collects on the thread that it lives on, and nowhere else.

    By default Python collects on whichever thread makes the next object. Qt objects in the garbage would be
    destroyed there, and the process would crash where the window's thread has an event or a timer for one of
    them.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self._old = 0  # objects that were old after the last full collection
        self._looked = 0  # Python's count of collections of the middle generation, at the last look at them
        timer = QTimer(self, interval=_INTERVAL)
        timer.timeout.connect(self.collect_due)
        timer.start()

    @Slot()
    def collect_due(self) -> None:
        """Collect the oldest generation whose turn it is, by Python's own counts."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        if counts[2] - self._looked > thresholds[2]:
            self._looked = counts[2]
            if len(gc.get_objects(2)) > self._old * _GROWTH:
                gc.collect(2)
                self._old, self._looked = len(gc.get_objects(2)), 0
                return
        for generation in (1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return
