"""How a model is loaded: a few settings first, the rest folded in two parts; and which backends this build
has."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from app.engine.devices.cores import SOURCE_FOLDER, gpu_backends, other_builds
from app.engine.devices.memory import Device, offload_devices
from app.engine.errors import SettingError
from app.engine.params import params_of
from app.engine.types import ModelOptions, Role
from app.ui.pair.layers_field import LayersField
from app.ui.pair.placement import Placement, with_workers
from app.ui.pair.worker_list import WorkerList
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import Field, make_field
from app.ui.widgets.form import Fold
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import MonoText
from app.ui.widgets.segmented import Segmented


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
        self._commands = other_builds(backends)
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
    """What it computes on, and what the command is for."""
    gpus = gpu_backends(backends)
    has = f"It computes on {', '.join((*gpus, 'the CPU'))}" if gpus else "It computes on the CPU alone"
    workers = "and on workers" if "RPC" in backends else "and cannot use workers"
    return f"{has}, {workers}. To make another build, run this in {SOURCE_FOLDER}:"


GAP = 12
FIRST = ("ctx_size", "threads")
DRAFT_CONTEXT = "Context size in tokens. 0 is the target's: the draft reads the same text."
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
    """The workers were edited: they serve the pair, so that the other form should have them too."""
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
        self._fields = {name: make_field(theme, params[name]) for name in names}
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
        self.devices_fold = Fold(theme, "Devices and workers", self._devices_part())
        self.more_fold = Fold(theme, f"{len(names) - len(FIRST)} more settings", self._more_part())
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

    def set_devices(self, devices: Sequence[Device], backends: Sequence[str]) -> None:
        """Set the devices, and what this build can use."""
        offload = offload_devices(devices)
        self.placement.set_devices(devices)
        self.workers.set_devices(devices)
        self.build.set_backends(backends)
        self.layers.setVisible(bool(offload))
        self._fields["kv_offload"].setVisible(bool(offload))
        self._where.setText("" if offload else no_device_words(backends))
        self._where.setVisible(not offload)

    # ------------------------------------------------------------------ building

    def _devices_part(self) -> QWidget:
        return _column(self.placement, kit.line(), self.workers, kit.line(), self.build)

    def _more_part(self) -> QWidget:
        widgets: list[QWidget] = []
        for title, names in MORE.items():
            heading = kit.label(title, "strong")
            widgets += [heading, *(self._fields[name] for name in names)]
        return _column(*widgets)

    # ------------------------------------------------------------------ what the user does

    def reset(self) -> None:
        """Return to the defaults, without workers: the other form should have none either."""
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
        """The options with the placement; without its shares where one of them is wrong."""
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
    gpus = gpu_backends(backends)
    if gpus:
        return f"No GPU was found (this build can use {', '.join(gpus)}): the CPU computes all layers."
    return "The CPU computes all layers: this build of llama.cpp uses no GPU."


def _column(*widgets: QWidget) -> QWidget:
    made = QWidget()
    kit.column(*widgets, spacing=GAP, on=made)
    return made
