"""What a pair takes by device, in rows and words."""

from __future__ import annotations

import msgspec
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.engine.devices.memory import CPU, Device, DeviceMemory, ModelMemory, PairMemory
from app.engine.devices.placement import LighterPair
from app.engine.types import ModelOptions, PairInfo
from app.ui.pair.memory_view import LighterOffers, MemoryView, advice, memory_rows, taken_memory
from app.ui.theme import Theme
from tests.ui.traces import model

GB = 1_000_000_000


def device(name: str, free: float, total: float = 8) -> Device:
    return Device(name, name, "CPU" if name == CPU else "GPU", "X", round(free * GB), round(total * GB))


def memory(
    name: str, weights: float, context: float = 0, compute: float = 0, layers: int = 0
) -> DeviceMemory:
    return DeviceMemory(name, round(weights * GB), round(context * GB), round(compute * GB), layers=layers)


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


TARGET = ModelMemory((memory("CUDA0", 4, 1, 0.5, 20), memory(CPU, 2, 0, 0.1, 13)), 20, 33)
DRAFT = ModelMemory((memory("CUDA0", 1, 0.2, 0.1, 17),), 17, 17)


def test_each_device_has_what_both_models_take_of_it() -> None:
    pair = PairMemory(TARGET, DRAFT, (device("CUDA0", 7), device("CUDA1", 7), device(CPU, 6)))
    first, second = memory_rows(pair)
    assert [role for role, _one in first.models] == ["target", "draft"]
    assert [role for role, _one in second.models] == ["target"]
    assert plain(first.sentence) == "6.80 GB of 7.00 GB free"
    assert (second.name, plain(second.sentence)) == ("Main memory", "2.10 GB of 6.00 GB free")
    assert advice((first, second)) == ""


def test_too_much_is_said_with_numbers_and_what_to_lower() -> None:
    rows = memory_rows(PairMemory(TARGET, DRAFT, (device("CUDA0", 6), device(CPU, 1))))
    assert plain(rows[0].sentence) == "6.80 GB of 6.00 GB free: 800 MB too much"
    assert rows[1].excess == round(1.1 * GB)
    assert "n_gpu_layers" in advice(rows) and "Fit for me" in advice(rows)
    assert "ctx_size" in advice(rows[1:]) and "n_gpu_layers" not in advice(rows[1:])


def test_a_device_that_does_not_tell_is_not_judged() -> None:
    row = memory_rows(PairMemory(DRAFT, None, (device("CUDA0", 0, 0),)))[0]
    assert row.excess == 0
    assert plain(row.sentence) == "1.30 GB; free memory unknown"


def test_what_was_taken_counts_as_free_for_its_own_pair() -> None:
    target = msgspec.structs.replace(model("t"), memory=TARGET.memory, n_gpu_layers=20, n_layers=32)
    taken = taken_memory(PairInfo(target), (device("CUDA0", 1.5), device(CPU, 6)))
    assert taken.draft is None
    assert taken.target.most_layers == 33
    assert plain(memory_rows(taken)[0].sentence) == "5.50 GB of 7.00 GB free"


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
    assert copies.startswith("8.00 MB of it is a copy of the weights") and "reordered" in copies


def test_a_single_way_to_less_memory_is_not_called_one_of_several(qtbot: QtBot) -> None:
    offers = LighterOffers()
    qtbot.addWidget(offers)
    pairs = [LighterPair(words, ModelOptions("t.gguf"), None, 1_000_000) for words in ("no draft", "less")]
    for count, said in ((2, "Any of these makes it fit:"), (1, "This makes it fit:")):
        offers.show_pairs(pairs[:count])
        assert said in [label.text() for label in offers.findChildren(QLabel)]
