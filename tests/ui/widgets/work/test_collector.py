"""Garbage is collected on the window's thread."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QTimer
from pytestqt.qtbot import QtBot

from app.ui.widgets.background import Collector


@pytest.fixture
def at_work(qapp: QCoreApplication) -> Iterator[Collector]:
    gc.enable()
    made = Collector(qapp)
    yield made
    made.deleteLater()


class Cycle(QObject):
    """A Qt object that only the garbage collector can find; it records the thread that found it."""

    def __init__(self, collected_on: list[threading.Thread]) -> None:
        super().__init__()
        self.itself = self
        self._collected_on = collected_on
        QTimer(self).start(1)

    def __del__(self) -> None:
        self._collected_on.append(threading.current_thread())


def made_objects() -> list[list[int]]:
    """As many objects as make a collection of the youngest generation due."""
    return [[] for _ in range(gc.get_threshold()[0] + 1)]


def forget_an_old(cycle: Cycle) -> None:
    """Make the cycle garbage of the oldest generation."""
    gc.collect(1)


def make_a_full_collection_due(collector: Collector) -> list[list[list[int]]]:
    """Run the collector until it has considered a full collection; returns the objects that made it due."""
    _youngest, middle, oldest = gc.get_threshold()
    kept = []
    for _ in range((middle + 2) * (oldest + 2)):
        kept.append(made_objects())
        collector.collect_due()
    return kept


def test_qt_objects_are_collected_on_the_windows_thread(qtbot: QtBot, at_work: Collector) -> None:
    collected_on: list[threading.Thread] = []
    kept: list[list[list[int]]] = []
    gc.collect()
    Cycle(collected_on)
    busy = threading.Thread(target=lambda: kept.append(made_objects()))
    busy.start()
    busy.join()
    assert collected_on == []

    def collected() -> bool:  # Widgets of earlier tests may end meanwhile, which counts against new objects.
        kept.append(made_objects())
        return bool(collected_on)

    qtbot.waitUntil(collected)
    assert collected_on == [threading.main_thread()]


def test_old_garbage_is_collected_in_its_turn(qtbot: QtBot, at_work: Collector) -> None:
    collected_on: list[threading.Thread] = []
    forget_an_old(Cycle(collected_on))
    kept = make_a_full_collection_due(at_work)
    assert kept and len(collected_on) == 1


def test_a_full_collection_waits_until_a_quarter_more_is_old(qtbot: QtBot, at_work: Collector) -> None:
    """A full collection looks at every object: with a long answer on the screen it would freeze the
    window."""
    collected_on: list[threading.Thread] = []
    kept = [made_objects() for _ in range(2000)]
    kept += make_a_full_collection_due(at_work)
    forget_an_old(Cycle(collected_on))
    kept += make_a_full_collection_due(at_work)
    assert collected_on == []
    kept += [made_objects() for _ in range(1000)]
    gc.collect(1)
    kept += make_a_full_collection_due(at_work)
    assert len(collected_on) == 1


def test_the_application_has_a_collector() -> None:
    code = (
        "import gc; from app.ui.window.application import make_application\n"
        "made = make_application(); print(gc.isenabled())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.returncode) == ("False", 0), ended.stderr
