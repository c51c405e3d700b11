"""The panel of a model chip: which file, and how it is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QWidget

from app.base.paths import OWN
from app.demo import OwnPair
from app.engine.errors import SettingError
from app.engine.types import ModelInfo, ModelOptions, Role
from app.ui.pair.memory_view import MemoryView
from app.ui.pair.model_form import ModelForm
from app.ui.pair.server_form import ServerForm
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.buttons import TwoLineButton
from app.ui.widgets.labels import ElidedButton, ElidedLabel, as_text
from app.ui.widgets.notice import Notice, WayOut
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
    Role.TARGET: "The model that answers: every token is its choice.",
    Role.DRAFT: "The model that guesses ahead: small and fast, best with the target's vocabulary.",
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
        """Say why the model has no effect at the moment; "" if it has one."""
        self._unused.setText(why)
        self._unused.setVisible(bool(why))

    def set_verdict(self, line: str, comes: bool = False) -> None:
        """Say how well the file shown would draft; "" if that is not known. If it `comes` later, its room is
        kept, so that nothing below moves under the pointer."""
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


RECENT_SHOWN = 5
TITLES = {Role.TARGET: "Target model", Role.DRAFT: "Draft model"}


def ask_for_model(parent: QWidget, folder: str) -> str:
    """Let the user choose a model file with the system's dialog; "" when nothing was chosen."""
    kinds = "GGUF models (*.gguf);;All files (*)"
    return QFileDialog.getOpenFileName(parent, "Choose a model", folder, kinds)[0]


class ModelPanel(QWidget):
    """Shows the model in use and lets the user choose a different one. Nothing is loaded before Apply."""

    applied = Signal(object)
    """The ModelOptions to load, or None for no draft."""
    own_wanted = Signal(object)
    """An OwnPair to load at once."""
    opened = Signal()
    """The panel was opened: its contents should be updated."""
    edited = Signal()
    """What Apply would load has changed."""
    fit_asked = Signal()
    look_asked = Signal()
    workers_changed = Signal(str)
    """See ModelForm."""

    def __init__(self, theme: Theme, role: Role, bundled: str, server_form: ServerForm | None = None) -> None:
        """`bundled` is the path that names the bundled model; `server_form` chooses a server in place of
        a model."""
        super().__init__()
        self._theme = theme
        self._role = role
        self._bundled = bundled
        self._server_form = server_form
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # a click beside a field ends the typing
        self._applied: ModelOptions | None = None
        self.path: str | None = None  # the file shown, as the settings name it; None for no draft
        self._info: ModelInfo | None = None
        self._retry = False
        self._beside = False
        self._served = False  # a server answers in place of the model shown
        self._own: dict[str, TwoLineButton] = {}  # by path of the target
        self._layout = kit.column(spacing=8, on=self)
        self._build_head()
        self.facts = ModelFacts(role)
        self._layout.addWidget(self.facts)
        self._build_choices()
        self._value = ModelOptions(bundled)  # what the form shows, until it is made
        self.memory = MemoryView(theme, self)
        self._layout.addSpacing(8)
        self._refresh()

    @cached_property
    def form(self) -> ModelForm:
        """How the model is loaded; made when the panel is first opened, or when something asks for it."""
        form = ModelForm(self._theme, self._role)
        form.set_value(self._value)
        form.insert_below_layers(self.memory)
        form.changed.connect(self._edited)
        form.fit_asked.connect(self.fit_asked)
        form.look_asked.connect(self.look_asked)
        form.workers_changed.connect(self.workers_changed)
        self._layout.addWidget(form)
        form.setVisible(self.path is not None)
        return form

    def _has_form(self) -> bool:
        return "form" in vars(self)

    # ------------------------------------------------------------------ what the window says

    def set_options(self, options: ModelOptions | None) -> None:
        """Show what is in use (a path may be symbolic, as in the settings)."""
        if self._applied is None or options is None or self._applied.path != options.path:
            self._info = None  # what was known is about another file
        self._applied = options
        self.path = options.path if options is not None else None
        if options is not None:
            self._value = options
            if self._has_form():
                self.form.set_value(options)
        self._retry = False
        self.notice.clear()  # what was said is about what was shown before
        self._refresh()

    def set_beside(self, pending: bool) -> None:
        """Whether Apply would also load changes that were made in the other model's panel."""
        self._beside = pending
        self._refresh()

    def set_in_use(self, options: ModelOptions | None) -> None:
        """The model in use differs from the one shown, which Apply would load."""
        self._applied = options
        self._refresh()

    def set_server(self, address: str) -> None:
        """Say that a server is used instead of the model shown, which Apply loads; "" for no server."""
        if self._server_form is not None:
            self._server_form.set_address(address, fixed=False)
            self._server.setChecked(bool(address))
        self._served = bool(address)
        if address:
            self.set_in_use(None)

    def set_info(self, info: ModelInfo | None) -> None:
        """The model of the applied options is loaded, or (None) no longer is."""
        self._info = info
        self.facts.end_loading()
        if info is not None:
            self._retry = False
            self.notice.clear()
        self._refresh()

    def set_loading(self, file: str, fraction: float) -> None:
        """The applied model is being read; `fraction` in [0, 1]."""
        self.notice.clear()
        self._retry = False
        self.facts.set_loading(file, fraction)

    def set_testing(self, file: str) -> None:
        """The applied model is read, and its first passes are tried."""
        self.set_loading(file, 1.0)
        self.facts.set_testing(file)

    def set_error(self, message: str, hint: str = "", *offers: WayOut) -> None:
        """The applied model could not be loaded; `offers` are buttons for other ways."""
        self.facts.end_loading()
        self._info = None
        self._retry = True
        self.tell(message, hint, *offers)
        self._refresh()

    def take_workers(self, rpc: str) -> None:
        """Take over workers that were edited in the other model's panel, because they serve both models."""
        self.form.set_workers(rpc)
        self._edited()

    def take_layers(self, layers: int) -> None:
        """Show the number of layers that was found to fit."""
        self.form.set_layers(layers)
        self._edited()

    def tell(self, message: str, hint: str = "", *offers: WayOut) -> None:
        """Say what is wrong; `offers` are buttons for other ways."""
        self.notice.tell(message, hint, *offers)

    def set_own(self, pairs: Sequence[OwnPair]) -> None:
        """Offer the pairs that come with Draftscope; called once, for the target."""
        for pair in pairs:
            row = TwoLineButton(self._theme, pair.name, pair.words)
            row.clicked.connect(lambda _checked=False, chosen=pair: self.own_wanted.emit(chosen))
            self._own[pair.target.path] = row
            self._pairs.addWidget(row)
        self._refresh()

    def set_recent(self, paths: Sequence[str]) -> None:
        """The recently used model files, the latest first."""
        kit.empty(self._recent)
        for path in [path for path in paths if not path.startswith(OWN)][:RECENT_SHOWN]:
            button = ElidedButton(describe_file(path))
            button.setProperty("kind", "row")
            button.setToolTip(as_text(path))
            button.setAccessibleName(f"Recent file {describe_file(path)}")
            button.clicked.connect(lambda _checked=False, chosen=path: self._pick(chosen))
            self._recent.addWidget(button)
        self._recent_title.setVisible(self._recent.count() > 0)

    def options(self) -> ModelOptions | None:
        """What Apply would load; raises SettingError if the form is wrong."""
        if self.path is None:
            return None
        shown = self.form.value() if self._has_form() else self._value
        return dataclasses.replace(shown, path=self.path)

    def can_load(self) -> bool:
        """Whether `options` would succeed."""
        return self.path is None or not self._has_form() or self.form.valid()

    @property
    def failed(self) -> bool:
        """Whether the model shown could not be loaded."""
        return self._retry

    def pending(self) -> bool:
        """Whether Apply would change anything."""
        try:
            return self._retry or self.options() != self._applied
        except SettingError:
            return True

    # ------------------------------------------------------------------ building

    def _build_head(self) -> None:
        """Build the title, Apply and the error as a separate part, which a popover keeps in place while
        anything unfolds below."""
        title = kit.label(TITLES[self._role], "title")
        self.notice = Notice(self._theme)
        self._apply = kit.button("Apply", self._send, kind="primary")
        other = Role.DRAFT if self._role is Role.TARGET else Role.TARGET
        self._beside_words = kit.label(f"The {other}'s changes are also loaded.", "caption")
        row = kit.row(title, kit.Spring(), self._beside_words, self._apply, spacing=8)
        self.head = kit.holder(kit.column(row, self.notice, spacing=8))
        self._layout.addWidget(self.head)

    def _build_choices(self) -> None:
        choices = [kit.button("Choose file…", self._ask)]
        if self._role is Role.DRAFT:
            choices.append(kit.button("Small pair's draft", lambda: self._pick(self._bundled)))
            choices.append(kit.button("No draft", lambda: self._pick(None)))
        if self._server_form is not None:
            tip = "Use a running llama-server or vLLM instead of a model here"
            self._server = kit.button("Use a server…", tip=tip)
            self._server.setCheckable(True)
            self._server.toggled.connect(self._server_form.setVisible)
            self._server_form.hide()
            choices.append(self._server)
        self._layout.addLayout(kit.row(*choices, kit.Spring(), spacing=8))
        if self._server_form is not None:
            self._layout.addWidget(self._server_form)
        self._pairs = kit.column(spacing=2)
        self._layout.addLayout(self._pairs)
        self._recent_title = kit.label("Recent", "caption")
        self._recent_title.hide()
        self._recent = kit.column(spacing=0)
        self._layout.addWidget(self._recent_title)
        self._layout.addLayout(self._recent)

    # ------------------------------------------------------------------ what the user does

    def _ask(self) -> None:
        known = self.path is not None and not self.path.startswith(OWN)
        folder = str(Path(self.path or "").parent) if known else str(Path.home())
        chosen = ask_for_model(self, folder)
        if chosen:
            self._pick(chosen)

    def _pick(self, path: str | None) -> None:
        self.path = path
        self.notice.clear()
        self._edited()

    def _edited(self) -> None:
        self._refresh()
        self.edited.emit()

    def _send(self) -> None:
        self.applied.emit(self.options())

    # ------------------------------------------------------------------ showing

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.form.setVisible(self.path is not None)
        self.opened.emit()

    def _refresh(self) -> None:
        pending = self.pending()
        if self._has_form():
            self.form.setVisible(self.path is not None)
        self._beside_words.setVisible(self._beside)
        usable = (pending or self._beside) and self.can_load()
        if self._apply.hasFocus() and not usable:
            # Qt would focus any other widget, and scroll to it.
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        self._apply.setEnabled(usable)
        for path, row in self._own.items():
            row.set_current(self._applied is not None and self._applied.path == path)
        same_file = self._applied is not None and self.path == self._applied.path
        wanted = "A server is in use. Apply loads this model instead." if self._served else "Apply loads it."
        unloaded = "Not loaded." if self._retry or not pending else wanted
        self.facts.show_file(self.path, self._info if same_file else None, unloaded)
