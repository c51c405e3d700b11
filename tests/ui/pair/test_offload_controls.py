"""The controls of the offload form: layers, devices, workers, builds."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QSlider,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine.devices.memory import ALL_LAYERS, CPU, Device, other_builds
from app.engine.errors import SettingError
from app.engine.params import params_of
from app.engine.types import ModelOptions
from app.ui.pair.model_form import BuildText, LayersField, ModelForm, describe_backends
from app.ui.pair.placement import BY_HAND, BY_MEMORY, Placement
from app.ui.pair.server_form import WorkerList
from app.ui.theme import Theme
from app.ui.widgets.field import NumberBox
from app.ui.widgets.segmented import Segmented
from tests.ui.named import named

HERE = Device(CPU, "AMD", "CPU", "CPU", 8_000_000_000, 16_000_000_000)
NEAR = Device("RPC0", "127.0.0.1:7", "worker", "RPC", 3_000_000_000, 4_000_000_000, "127.0.0.1:7")
FAR = Device("RPC1", "box:7", "worker", "RPC", 5_000_000_000, 6_000_000_000, "box:7")
LAYERS = next(param for param in params_of(ModelOptions) if param.name == "n_gpu_layers")


def words(widget: QWidget) -> str:
    QCoreApplication.processEvents()  # Qt shows new rows a moment later
    found = [label.text() for label in widget.findChildren(QLabel) if label.isVisibleTo(widget)]
    return "\n".join(found).replace("\N{NO-BREAK SPACE}", " ")


def press(qtbot: QtBot, widget: QWidget, text: str) -> None:
    QCoreApplication.processEvents()
    found = next(button for button in widget.findChildren(QPushButton) if button.text() == text)
    qtbot.mouseClick(found, Qt.MouseButton.LeftButton)


def type_over(qtbot: QtBot, box: NumberBox, text: str) -> None:
    box.lineEdit().selectAll()
    qtbot.keyClicks(box.lineEdit(), text)
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)


# ----------------------------------------------------------------------------------------- layers


@pytest.fixture
def layers(qtbot: QtBot, theme: Theme) -> LayersField:
    made = LayersField(LAYERS)
    qtbot.addWidget(made)
    made.show()
    return made


def test_all_none_slider_and_number_are_one_value(qtbot: QtBot, layers: LayersField) -> None:
    slider, box = layers.findChild(QSlider), layers.findChild(NumberBox)
    assert slider is not None and box is not None
    layers.set_most(9)
    assert (layers.value(), slider.value(), box.value()) == (ALL_LAYERS, 9, 9)
    assert "All layers are on devices" in words(layers)
    with qtbot.waitSignal(layers.edited):
        press(qtbot, layers, "None")
    assert (layers.value(), slider.value(), box.value()) == (0, 0, 0)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert (layers.value(), box.value()) == (1, 1)
    type_over(qtbot, box, "4")
    assert (layers.value(), slider.value()) == (4, 4)
    assert "4 on devices, the other 5 on the CPU" in words(layers)
    type_over(qtbot, box, "9")
    assert layers.value() == ALL_LAYERS
    press(qtbot, layers, "None")
    press(qtbot, layers, "All")
    assert (layers.value(), slider.value()) == (ALL_LAYERS, 9)


def test_more_layers_than_there_are_is_refused(qtbot: QtBot, layers: LayersField) -> None:
    layers.set_most(9)
    type_over(qtbot, layers.findChild(NumberBox), "10")
    with pytest.raises(SettingError, match="10"):
        layers.value()
    assert "from 0 to 9" in words(layers)


def test_a_value_stands_while_the_number_of_layers_is_not_known(qtbot: QtBot, layers: LayersField) -> None:
    layers.set_value(5)
    assert layers.value() == 5 and "5 layers" in words(layers)
    assert not layers.findChild(QSlider).isEnabled()
    layers.set_most(9)
    assert layers.value() == 5
    layers.set_most(3)
    assert layers.value() == 5, "another file has fewer: the setting is still what it was"


# ---------------------------------------------------------------------------------------- devices


@pytest.fixture
def placement(qtbot: QtBot, theme: Theme) -> Placement:
    made = Placement(theme)
    qtbot.addWidget(made)
    made.show()
    return made


def put(placement: Placement) -> ModelOptions:
    return placement.put_into(ModelOptions("m"))


def check(qtbot: QtBot, placement: Placement, name: str) -> None:
    QCoreApplication.processEvents()
    found = next(
        checkbox
        for checkbox in placement.findChildren(QCheckBox)
        if checkbox.text() == name and checkbox.isVisible()
    )
    qtbot.mouseClick(found, Qt.MouseButton.LeftButton, pos=found.rect().center() / 2)


def share_boxes(placement: Placement) -> list[NumberBox]:
    QCoreApplication.processEvents()
    return [box for box in placement.findChildren(NumberBox) if box.isVisible()]


def pick(qtbot: QtBot, placement: Placement, choice: str) -> None:
    segmented = placement.findChild(Segmented)
    if segmented.choice() != choice:
        qtbot.keyClick(segmented, Qt.Key.Key_Right if choice == BY_HAND else Qt.Key.Key_Left)
    assert segmented.choice() == choice


def test_devices_are_listed_with_their_memory(placement: Placement) -> None:
    assert "when the engine is ready" in words(placement)
    placement.set_devices((NEAR, FAR, HERE))
    assert "worker at box:7" in words(placement)
    assert "5.00 GB free of 6.00 GB" in words(placement)
    assert "AMD" not in words(placement)
    placement.set_devices((HERE,))
    assert "the only device" in words(placement)


def test_all_some_and_no_devices(qtbot: QtBot, placement: Placement) -> None:
    placement.set_devices((NEAR, FAR, HERE))
    assert placement.chosen == ("RPC0", "RPC1")
    check(qtbot, placement, "RPC0")
    assert put(placement).device == "RPC1"
    assert not placement.findChild(Segmented).isVisible(), "there is nothing to split"
    check(qtbot, placement, "RPC1")
    assert put(placement).device == "none"
    assert "all layers are on the CPU" in words(placement)
    check(qtbot, placement, "RPC1")
    check(qtbot, placement, "RPC0")
    assert put(placement).device == ""


def test_shares(qtbot: QtBot, placement: Placement) -> None:
    placement.set_devices((NEAR, FAR, HERE))
    assert share_boxes(placement) == []
    pick(qtbot, placement, BY_HAND)
    assert put(placement).tensor_split == "1,1"
    type_over(qtbot, share_boxes(placement)[0], "3")
    assert put(placement).tensor_split == "3,1"
    assert "75 %" in words(placement) and "25 %" in words(placement)
    type_over(qtbot, share_boxes(placement)[0], "x")
    with pytest.raises(SettingError):
        put(placement)
    type_over(qtbot, share_boxes(placement)[0], "0")
    type_over(qtbot, share_boxes(placement)[1], "0")
    with pytest.raises(SettingError, match="above 0"):
        put(placement)
    assert "above 0" in words(placement)
    pick(qtbot, placement, BY_MEMORY)
    assert put(placement).tensor_split == ""


def test_one_device_of_several(qtbot: QtBot, placement: Placement) -> None:
    placement.set_devices((NEAR, FAR, HERE))
    placement.set_value(ModelOptions("m", split_mode="none", main_gpu=1))
    main = named(placement, "The only device in use", QComboBox)
    assert main.currentText() == "RPC1"
    assert not placement.findChild(Segmented).isVisible()
    qtbot.keyClick(main, Qt.Key.Key_Up)
    assert put(placement).main_gpu == 0


def test_a_device_that_is_not_there_can_be_let_go(qtbot: QtBot, placement: Placement) -> None:
    placement.set_value(ModelOptions("m", device="CUDA3", tensor_split="1"))
    placement.set_devices((NEAR, HERE))
    assert "Not on this machine" in words(placement)
    check(qtbot, placement, "CUDA3")
    assert put(placement).device == "none"


def test_what_nobody_touches_stays_as_it_was_written(placement: Placement) -> None:
    odd = ModelOptions("m", device="RPC1,RPC0", tensor_split="6/1", main_gpu=1, split_mode="row")
    placement.set_value(odd)
    placement.set_devices((NEAR, FAR, HERE))
    assert put(placement) == odd


# ---------------------------------------------------------------------------------------- workers


@pytest.fixture
def workers(qtbot: QtBot, theme: Theme) -> WorkerList:
    made = WorkerList(theme)
    qtbot.addWidget(made)
    made.resize(480, 500)
    made.show()
    return made


def test_workers_come_and_go(qtbot: QtBot, workers: WorkerList) -> None:
    address = workers.findChild(QLineEdit)
    qtbot.keyClicks(address, " 127.0.0.1:7 ")
    with qtbot.waitSignal(workers.edited):
        press(qtbot, workers, "Add")
    assert workers.value() == "127.0.0.1:7" and address.text() == ""
    qtbot.keyClicks(address, "box:7")
    qtbot.keyClick(address, Qt.Key.Key_Return)
    assert workers.value() == "127.0.0.1:7,box:7"
    assert "not reached yet · not protected" in words(workers)
    workers.set_devices((NEAR, FAR, HERE))
    assert "RPC0 · this machine" in words(workers) and "RPC1 · not protected" in words(workers)
    removers = [button for button in workers.findChildren(QToolButton) if "Remove" in button.toolTip()]
    shown = [button for button in removers if button.isVisible()]
    qtbot.mouseClick(shown[0], Qt.MouseButton.LeftButton)
    assert workers.value() == "box:7"


def test_a_wrong_address_is_told_and_kept(qtbot: QtBot, workers: WorkerList) -> None:
    address = workers.findChild(QLineEdit)
    qtbot.keyClicks(address, "box")
    with qtbot.assertNotEmitted(workers.edited):
        press(qtbot, workers, "Add")
    assert "HOST:PORT" in words(workers) and address.text() == "box"


def test_the_missing_protection_is_said_before_anything_is_typed(workers: WorkerList) -> None:
    assert "no encryption and no password" in words(workers)


def test_a_worker_that_does_not_answer_can_be_looked_for_again(qtbot: QtBot, workers: WorkerList) -> None:
    workers.set_value("box:7")
    workers.show_problem("There is no worker at box:7.", "Start one there.")
    assert "no worker at box:7" in words(workers)
    with qtbot.waitSignal(workers.look_asked):
        press(qtbot, workers, "Check again")
    workers.show_problem("", "")
    assert "no worker at box:7" not in words(workers)


def test_a_worker_whose_address_is_part_of_anothers_is_not_blamed(workers: WorkerList) -> None:
    workers.set_value("box:5005,box:50052,mybox:50052")
    workers.show_problem("There is no worker at box:50052: refused.", "Start one there.")
    assert words(workers).count("does not answer") == 1
    assert workers.blamed("There is no worker at box:50052: refused.") == ("box:50052",)
    assert workers.blamed("The file is empty.") == ()


def test_rubbish_in_the_settings_is_shown_as_it_is(workers: WorkerList) -> None:
    workers.set_value("rubbish")
    assert "rubbish" in words(workers)


# ----------------------------------------------------------------------------------------- builds


def test_the_command_of_another_build(qtbot: QtBot, theme: Theme) -> None:
    made = BuildText(theme)
    qtbot.addWidget(made)
    made.set_backends(("RPC", "CPU"))
    made.show()
    assert "the CPU only, and on workers" in words(made)
    choice = made.findChild(Segmented)
    qtbot.keyClick(choice, Qt.Key.Key_Right)
    copy = made.findChild(QToolButton)
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == f"make run GPU={choice.choice().lower()}"


def test_builds_that_this_kind_of_machine_can_have() -> None:
    assert list(other_builds(("CPU", "RPC"), "linux")) == ["CUDA", "Vulkan", "ROCm"]
    assert list(other_builds(("CPU", "RPC"), "darwin")) == ["Metal"]  # what set-up builds there
    assert list(other_builds(("CUDA", "CPU", "RPC"), "linux")) == ["Vulkan", "ROCm"]
    assert "CUDA, the CPU" in describe_backends(("CUDA", "CPU"))
    assert "cannot use workers" in describe_backends(("CUDA", "CPU"))


# ------------------------------------------------------------------------------------------- form


@pytest.fixture
def form(qtbot: QtBot, theme: Theme) -> ModelForm:
    made = ModelForm(theme)
    qtbot.addWidget(made)
    made.show()
    return made


def test_every_option_survives_the_form(form: ModelForm) -> None:
    options = ModelOptions(
        "m", 512, 2, 3, 256, 64, 5, "q8_0", "q4_0", "on", False, False, "127.0.0.1:7,box:7", "RPC1,RPC0",
        "row", "2,1", 1, False, True, 3, "mlock", mtp=False,
    )  # fmt: skip
    defaults = ModelOptions("m")
    for param in params_of(ModelOptions):
        assert getattr(options, param.name) != getattr(defaults, param.name), "the test says nothing of it"
    form.set_value(options)
    assert form.value() == options
    form.set_devices((NEAR, FAR, HERE), ("RPC", "CPU"))
    form.layers.set_most(9)
    assert form.value() == options and form.valid()
    told: list[str] = []
    form.workers_changed.connect(told.append)
    form.reset()
    assert form.value() == ModelOptions("m") and told == [""]


def test_someone_without_a_gpu_reads_one_line(form: ModelForm) -> None:
    form.set_devices((HERE,), ("RPC", "CPU"))
    assert "ll layers are on the CPU" in words(form)
    assert not form.layers.isVisible() and not form.placement.isVisible()
    form.set_devices((NEAR, HERE), ("RPC", "CPU"))
    assert form.layers.isVisible() and "ll layers are on the CPU" not in words(form)
    form.devices_fold.button.click()
    assert form.placement.isVisible()


def test_workers_from_elsewhere_are_taken_over(form: ModelForm) -> None:
    form.set_value(ModelOptions("m", rpc="a:1,b:2", device="RPC1", n_gpu_layers=3))
    form.set_workers("b:2")
    assert form.value() == ModelOptions("m", rpc="b:2", device="none", n_gpu_layers=3)


def test_first_n_experts_mean_nothing_where_all_stay(qtbot: QtBot, form: ModelForm) -> None:
    form.more_fold.button.click()
    assert form.field("n_cpu_moe").isEnabled()
    qtbot.mouseClick(form.field("cpu_moe").control, Qt.MouseButton.LeftButton)  # type: ignore[attr-defined]
    assert not form.field("n_cpu_moe").isEnabled()
