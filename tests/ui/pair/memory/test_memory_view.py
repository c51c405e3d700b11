"""The table of a pair's memory: what its numbers are made of."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.engine.devices.lighter import LighterPair
from app.engine.devices.memory import CPU, Device, DeviceMemory, ModelMemory, PairMemory
from app.engine.types import ModelOptions
from app.ui.pair.memory.lighter_offers import LighterOffers
from app.ui.pair.memory.memory_view import MemoryView
from app.ui.theme import Theme

MB = 1_000_000


def test_weights_above_the_size_of_the_file_are_explained(qtbot: QtBot, theme: Theme) -> None:
    view = MemoryView(theme)
    qtbot.addWidget(view)
    usage = DeviceMemory(CPU, weights=46 * MB, context=5 * MB, mapped=38 * MB, layers=6, repacked=8 * MB)
    main = Device(CPU, CPU, "CPU", "X", 4000 * MB, 8000 * MB)
    view.show_memory(PairMemory(ModelMemory((usage,), 0, 6), None, (main,)), taken=True, files=("t", ""))
    (cell,) = [
        label
        for label in view.findChildren(QLabel)
        if label.text().replace("\N{NO-BREAK SPACE}", " ") == "46.0 MB"
    ]
    mapped, copies = cell.toolTip().replace("\N{NO-BREAK SPACE}", " ").split("\n")
    assert mapped.startswith("38.0 MB of it is mapped from the file")
    assert copies.startswith("8.00 MB of it is a copy of weights") and "multiplies" in copies


def test_a_single_way_to_less_memory_is_not_called_one_of_several(qtbot: QtBot) -> None:
    offers = LighterOffers()
    qtbot.addWidget(offers)
    pairs = [LighterPair(words, ModelOptions("t.gguf"), None, 1_000_000) for words in ("no draft", "less")]
    for count, said in ((2, "Any of these makes it fit:"), (1, "This makes it fit:")):
        offers.show_pairs(pairs[:count])
        assert said in [label.text() for label in offers.findChildren(QLabel)]
