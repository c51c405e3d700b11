"""What a model panel says of its model: which file it is, and whether it is loaded."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.base.paths import OWN
from app.engine.types import ModelInfo, Role
from app.ui.widgets import kit
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.words import (
    describe_file,
    describe_load,
    describe_model,
    file_name,
    load_warning,
    unread_name,
)

_VERDICT_LINES = 2
ROLES = {
    Role.TARGET: "Writes the answer: every token is the target's choice.",
    Role.DRAFT: "Guesses ahead. Small and fast, best with the target's vocabulary.",
}


class ModelFacts(QWidget):
    """The model's part in the pair, its name, its state and its file, and the progress of loading it."""

    def __init__(self, role: Role) -> None:
        super().__init__()
        self._role = role
        self._name = ElidedLabel(Qt.TextElideMode.ElideMiddle, role="strong")
        self._file = ElidedLabel(Qt.TextElideMode.ElideMiddle, role="caption")
        self._state, self._verdict, self._warning, self._unused = (
            kit.label("", role, wrap=True, plain=True)
            for role in ("caption", "caption", "error", "secondary")
        )
        self._load = kit.label("", "caption")
        self._verdict.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._progress = kit.progress()
        for widget in (self._verdict, self._unused, self._progress):
            widget.hide()
        does = kit.label(ROLES[role], "secondary", wrap=True, plain=True)
        block = kit.column(
            self._name, self._state, self._file, self._load, self._verdict, self._warning, spacing=2
        )
        kit.column(does, self._unused, 8, block, self._progress, spacing=8, on=self)

    def set_unused(self, why: str) -> None:
        """Say why the model has no effect at the moment; "" where it has one."""
        self._unused.setText(why)
        self._unused.setVisible(bool(why))

    def set_verdict(self, line: str, comes: bool = False) -> None:
        """Say how well the file shown would draft; "" where that is not known. Where it `comes` later, its
        room is kept: what stands below would move away from under the pointer."""
        if comes:
            self._verdict.setMinimumHeight(_VERDICT_LINES * self._verdict.fontMetrics().lineSpacing())
        elif not line:
            self._verdict.setMinimumHeight(0)
        self._verdict.setText(line)
        self._verdict.setVisible(bool(line) or comes)

    def set_loading(self, file: str, fraction: float) -> None:
        """The model is being read; `fraction` in [0, 1]."""
        self._progress.setValue(round(fraction * 100))
        self._progress.setAccessibleName(f"Loading {file}")
        self._progress.show()
        self._state.setText(f"Loading {file}, {fraction * 100:.0f} %")

    def set_testing(self, file: str) -> None:
        """The model is read, and its first passes are tried."""
        self.set_loading(file, 1.0)
        self._state.setText(f"Testing {file} with a first pass")

    def end_loading(self) -> None:
        """The model is loaded, or cannot be."""
        self._progress.hide()

    def show_file(self, path: str | None, info: ModelInfo | None, unloaded: str) -> None:
        """Show a file, None for no draft; `info` says what it is once it is loaded, `unloaded` why it is
        not."""
        warning = load_warning(info, self._role) if info is not None else ""
        self._load.setVisible(info is not None)
        self._warning.setText(warning)
        self._warning.setVisible(bool(warning))
        known = path is not None and not path.startswith(OWN)
        self._file.set_text(describe_file(path or "") if known else "")
        self._file.setVisible(known)
        self._name.setToolTip(as_text(path or ""))
        if path is None:
            self._name.set_text("No draft")
            self._state.setText("Strategies that need a draft model cannot be used.")
        elif info is not None:
            self._name.set_text(info.name)
            self._state.setText(describe_model(info))
            self._load.setText(describe_load(info))
        else:
            self._name.set_text(unread_name(path) if path.startswith(OWN) else file_name(path))
            self._state.setText(unloaded)
