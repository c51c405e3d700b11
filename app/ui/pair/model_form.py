"""Load options: layers on devices and a few settings first, the rest folded in two parts. Also the backends
of this build."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QSlider, QWidget

from app.engine.devices import memory
from app.engine.errors import SettingError
from app.engine.params import Param, params_of
from app.engine.types import ModelOptions, Role
from app.ui.pair.placement import Placement, with_workers
from app.ui.pair.server_form import WorkerList
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.field import Field, NumberBox, make_field
from app.ui.widgets.form import FoldedPart
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import MonoText
from app.ui.widgets.segmented import Segmented


class LayersField(QWidget):
    """Edits `n_gpu_layers`. `set_most` sets how many layers there are, once the model's file is known."""

    edited = Signal()
    fit_asked = Signal()

    def __init__(self, param: Param) -> None:
        super().__init__()
        self._param = param
        self._value = memory.ALL_LAYERS
        self.most: int | None = None
        name = kit.label(param.name, "mono")
        self._of = kit.label("", "caption")
        self._words = kit.label("", "caption", wrap=True)
        self._box = NumberBox(param)
        self._box.setAccessibleName("Layers on devices")
        self._box.edited.connect(self._typed)
        self._slider = QuietSlider(Qt.Orientation.Horizontal)
        self._slider.setAccessibleName("Layers on devices")
        self._slider.valueChanged.connect(self._slid)
        self.none = kit.button(
            "None", lambda: self._choose(0), kind="flat", tip="Keep every layer in main memory, on the CPU."
        )
        self.all = kit.button(
            "All", lambda: self._choose(memory.ALL_LAYERS), kind="flat", tip="Put every layer on devices."
        )
        self.fit = kit.button(
            "Fit for me",
            self.fit_asked,
            tip="Put as many layers on devices as their free memory allows, the target's first. Sets "
            "target and draft.",
        )
        right = Qt.AlignmentFlag.AlignRight
        head = kit.grid((-1, 2), stretch=0)
        head.addWidget(name, 0, 0)
        head.addWidget(self._box, 0, 1, right)
        head.addWidget(self._words, 1, 0)
        head.addWidget(self._of, 1, 1, right)
        row = kit.row((self._slider, 1), 8, self.none, self.all, self.fit, spacing=4)
        kit.column(head, row, spacing=4, on=self)
        self.setToolTip(f"{param.doc}\nllama.cpp counts the output layer as one more.")
        self.set_most(None)

    def value(self) -> int:
        """The option; raises SettingError if the box has no such number."""
        if self.most is not None:
            self._box.value()
        return self._value

    def set_value(self, value: int) -> None:
        """Show a value, without emitting a signal."""
        self._value = value
        self._show()

    def set_most(self, most: int | None) -> None:
        """Set how many layers the model has, counting the output layer; None: not known (yet)."""
        self.most = most
        known = most is not None
        if known:
            self._box.set_param(dataclasses.replace(self._param, low=0, high=most))
        self._box.setVisible(known)
        self._of.setVisible(known)
        self._of.setText(f"0 to {most}")
        self._slider.setEnabled(known)
        self._slider.blockSignals(True)
        self._slider.setRange(0, most or 1)
        self._slider.blockSignals(False)
        self._show()

    def set_fitting(self, fitting: bool) -> None:
        """Show whether the number of layers is being fitted."""
        self.fit.setEnabled(not fitting)
        self.fit.setText("Fitting…" if fitting else "Fit for me")

    def error(self) -> SettingError | None:
        return self._box.error() if self.most is not None else None

    def _choose(self, value: int) -> None:
        self.set_value(value)
        self.edited.emit()

    def _typed(self) -> None:
        error = self._box.error()
        if error is None:
            self._take(int(self._box.value()))
        self._show(box=False)
        self.edited.emit()

    def _slid(self, value: int) -> None:
        self._take(value)
        self._show()
        self.edited.emit()

    def _take(self, layers: int) -> None:
        self._value = memory.ALL_LAYERS if layers == self.most else layers

    def _show(self, box: bool = True) -> None:
        most = self.most
        problem = "" if box or most is None else self._box.problem()
        set_role(self._words, role="error" if problem else "caption")
        if most is None:
            asked = "all layers" if self._value < 0 else f"{self._value} layers"
            self._words.setText(f"On devices: {asked}.")
            return
        layers = most if self._value < 0 else min(self._value, most)
        if box:
            self._box.set_value(layers)
        self._slider.blockSignals(True)
        self._slider.setValue(layers)
        self._slider.blockSignals(False)
        rest = most - layers
        if problem:
            self._words.setText(problem)
        elif not layers:
            self._words.setText("All layers are on the CPU.")
        elif rest:
            self._words.setText(f"{layers} on devices, the other {rest} on the CPU.")
        else:
            self._words.setText("All layers are on devices.")


class QuietSlider(QSlider):
    """A slider that ignores the wheel, so that scrolling a form changes nothing in it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class BuildText(QWidget):
    """One command at a time: that of the backend chosen."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._commands: dict[str, str] = {}
        self._choice: Segmented | None = None
        self._has = kit.label("", "caption", wrap=True)
        self._command = MonoText(theme)
        self._copy_button = IconButton(theme, "copy", "Copy the command", act=self._copy)
        self._row = kit.row((self._command, 1), self._copy_button)
        kit.column(kit.label("This build of llama.cpp", "strong"), self._has, self._row, spacing=6, on=self)
        self.hide()

    def set_backends(self, backends: Sequence[str]) -> None:
        """The backends of this build, in llama.cpp's words."""
        self._has.setText(describe_backends(backends))
        self._commands = memory.other_builds(backends)
        if self._choice is not None:
            self._choice.deleteLater()
            self._choice = None
        self.show()
        for widget in (self._command, self._copy_button):
            widget.setVisible(bool(self._commands))
        if not self._commands:
            return
        self._choice = Segmented(self._theme, "Build for", tuple(self._commands))
        self._choice.picked.connect(self._picked)
        self._row.insertWidget(0, self._choice)
        self._picked(self._choice.choice())

    def _picked(self, choice: str) -> None:
        self._command.set_text(self._commands[choice])

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._command.text())


def describe_backends(backends: Sequence[str]) -> str:
    """The devices of a backend, and the purpose of its command."""
    gpus = memory.gpu_backends(backends)
    has = f"It runs on {', '.join((*gpus, 'the CPU'))}" if gpus else "It runs on the CPU only"
    workers = "and on workers" if "RPC" in backends else "and cannot use workers"
    return f"{has}, {workers}. To make a different build, run this in {memory.SOURCE_FOLDER}:"


GAP = 12
FIRST = ("ctx_size", "threads")
DRAFT_CONTEXT = "Context size in tokens. 0 uses the target's, as the draft reads the same text."
MORE = {
    "KV cache": ("cache_type_k", "cache_type_v", "kv_offload", "flash_attn", "swa_full"),
    "Experts": ("cpu_moe", "n_cpu_moe"),
    "Passes": ("threads_batch", "batch_size", "ubatch_size", "repack"),
    "File": ("load_mode",),
}


class ModelForm(QWidget):
    """Edits ModelOptions except the path. `set_devices` sets what depends on the devices."""

    changed = Signal()
    """Something was edited; `valid` says whether all of it is right."""
    workers_changed = Signal(str)
    """The workers were edited. They serve both models, so the other form should get them, too."""
    fit_asked = Signal()
    look_asked = Signal()

    def __init__(self, theme: Theme, role: Role = Role.TARGET) -> None:
        super().__init__()
        self._theme = theme
        self._base = ModelOptions("")
        params = {param.name: param for param in params_of(ModelOptions)}
        if role is Role.DRAFT:
            params["ctx_size"] = dataclasses.replace(params["ctx_size"], doc=DRAFT_CONTEXT)
        names = (*FIRST, *(name for group in MORE.values() for name in group))
        self._fields = {name: make_field(params[name]) for name in names}
        self.layers = LayersField(params["n_gpu_layers"])
        self.layers.hide()
        self.placement = Placement(theme)
        self.workers = WorkerList(theme)
        self.build = BuildText(theme)
        self._where = kit.label("", "caption", wrap=True)
        self._where.hide()
        first = [self._fields[name] for name in FIRST]
        self._layout = kit.column(*first, self.layers, self._where, spacing=GAP, on=self)
        self._place = self._layout.count()
        self.devices_fold = FoldedPart(theme, "Devices and workers", self._devices_part())
        self.more_fold = FoldedPart(theme, f"{len(names) - len(FIRST)} more settings", self._more_part())
        self._layout.addWidget(self.devices_fold)
        self._layout.addWidget(self.more_fold)
        self._reset = kit.button("Reset to defaults", self.reset, kind="flat")
        self._layout.addLayout(kit.row(kit.Spring(), self._reset))
        for field in self._fields.values():
            field.edited.connect(self._edited)
        self.layers.edited.connect(self._edited)
        self.layers.fit_asked.connect(self.fit_asked)
        self.placement.edited.connect(self._edited)
        self.workers.edited.connect(self._workers_edited)
        self.workers.look_asked.connect(self.look_asked)
        self.set_value(self._base)

    def insert_below_layers(self, widget: QWidget) -> None:
        """A widget between the first settings and the folds."""
        self._layout.insertWidget(self._place, widget)

    # ------------------------------------------------------------------ the value

    def value(self) -> ModelOptions:
        """The edited options; raises SettingError for the first that is wrong."""
        values = {name: field.value() for name, field in self._fields.items()}
        values |= {"n_gpu_layers": self.layers.value(), "rpc": self.workers.value()}
        return self.placement.put_into(dataclasses.replace(self._base, **values))  # type: ignore[arg-type]

    def set_value(self, value: ModelOptions) -> None:
        """Show options, without emitting a signal."""
        self._base = value
        for name, field in self._fields.items():
            field.set_value(getattr(value, name))
        self.layers.set_value(value.n_gpu_layers)
        self.workers.set_value(value.rpc)
        self.placement.set_value(value)
        self._check()

    def set_workers(self, rpc: str) -> None:
        """Take over workers that were edited elsewhere, without emitting a signal."""
        self._base = with_workers(self._placed(), rpc)
        self.placement.set_value(self._base)
        self.workers.set_value(rpc)
        self._check()

    def set_layers(self, layers: int) -> None:
        """Take over `n_gpu_layers`, without emitting a signal."""
        self.layers.set_value(layers)
        self._check()

    def valid(self) -> bool:
        """Whether `value` would succeed."""
        try:
            self.value()
        except SettingError:
            return False
        return True

    def field(self, name: str) -> Field:
        """The field of a plain parameter."""
        return self._fields[name]

    # ------------------------------------------------------------------ what the engine says

    def set_devices(self, devices: Sequence[memory.Device], backends: Sequence[str]) -> None:
        """Set the devices, and what this build can use."""
        offload = memory.offload_devices(devices)
        self.placement.set_devices(devices)
        self.workers.set_devices(devices)
        self.build.set_backends(backends)
        self.layers.setVisible(bool(offload))
        self._fields["kv_offload"].setVisible(bool(offload))
        self._where.setText("" if offload else no_device_words(backends))
        self._where.setVisible(not offload)

    # ------------------------------------------------------------------ building

    def _devices_part(self) -> QWidget:
        parts = self.placement, kit.line(), self.workers, kit.line(), self.build
        return kit.holder(kit.column(*parts, spacing=GAP))

    def _more_part(self) -> QWidget:
        widgets: list[QWidget] = []
        for title, names in MORE.items():
            heading = kit.label(title, "strong")
            widgets += [heading, *(self._fields[name] for name in names)]
        return kit.holder(kit.column(*widgets, spacing=GAP))

    # ------------------------------------------------------------------ what the user does

    def reset(self) -> None:
        """Return to the defaults, without workers; the other form should have none either."""
        had_workers = bool(self.workers.value())
        self.set_value(ModelOptions(self._base.path))
        if had_workers:
            self.workers_changed.emit("")
        self.changed.emit()

    def _edited(self) -> None:
        self._check()
        self.changed.emit()

    def _workers_edited(self) -> None:
        rpc = self.workers.value()
        self.set_workers(rpc)
        self.workers_changed.emit(rpc)
        self.changed.emit()

    def _placed(self) -> ModelOptions:
        """The options with the placement; without its shares if one of them is wrong."""
        try:
            return self.placement.put_into(self._base)
        except SettingError:
            return dataclasses.replace(self._base, tensor_split="")

    def _check(self) -> None:
        self._fields["n_cpu_moe"].setEnabled(not self._fields["cpu_moe"].value())
        try:
            default = self.value() == ModelOptions(self._base.path)
        except SettingError:
            default = False
        self._reset.setEnabled(not default)


def no_device_words(backends: Sequence[str]) -> str:
    """One line for a machine without a GPU."""
    gpus = memory.gpu_backends(backends)
    if gpus:
        return f"No GPU was found (this build can use {', '.join(gpus)}), so all layers are on the CPU."
    return "All layers are on the CPU: this build of llama.cpp uses no GPU."
