"""The panel behind the strategy chip: which strategy, its settings, and how drafts are verified."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.strategy import NONE, StrategyPart, StrategySpec
from app.engine.types import Verification
from app.ui.icons import IconButton
from app.ui.panels.form import ParamForm
from app.ui.panels.notice import Notice
from app.ui.panels.segmented import Segmented
from app.ui.panels.strategy_row import StrategyRow
from app.ui.theme import Theme
from app.ui.theme.style import set_role

AUTO = "auto"
NONE_SUMMARY = "The target alone, one token a pass. The baseline that speed-ups are measured against."
RULES = {
    AUTO: "Greedy at temperature 0, else speculative.",
    "greedy": "A draft token passes where it is the target's most probable one. Temperature 0 only.",
    "speculative": "A draft token passes with probability min(1, p / q); the target's law holds.",
    "match": "A draft token passes where it equals the target's own draw.",
}


class StrategyPanel(QWidget):
    """Picks, forms and text show one spec; a change of any of them changes the others.

    Every right change is in use from the next answer on: there is nothing to apply.
    """

    spec_changed = Signal(str)
    """The user made another spec, one that parses."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spec = StrategySpec()
        self._temperature = 0.0
        self._has_draft = True
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        title = QLabel("Strategy")
        title.setProperty("role", "title")
        layout.addWidget(title)
        self._group = QButtonGroup(self)
        self._rows: dict[str, StrategyRow] = {}
        summaries = {NONE: NONE_SUMMARY} | {name: kind.summary for name, kind in KINDS.items()}
        for name, summary in summaries.items():
            row = StrategyRow(theme, name, summary)
            row.button.clicked.connect(self._picked)
            self._group.addButton(row.button)
            self._rows[name] = row
            layout.addWidget(row)
        self._forms: dict[str, ParamForm] = {}
        self._headings: dict[str, QLabel] = {}
        self._shown: dict[str, object] = {}  # the parameters that each form was last brought to
        for name, kind in KINDS.items():
            heading = QLabel(f"Settings of {name}")
            heading.setProperty("role", "strong")
            form = ParamForm(theme, kind.params)
            form.changed.connect(self._form_changed)
            self._headings[name], self._forms[name] = heading, form
            layout.addSpacing(8)
            layout.addWidget(heading)
            layout.addWidget(form)
        self._build_verification(theme, layout)
        self._build_text(theme, layout)
        self._notice = Notice(theme)
        layout.addWidget(self._notice)
        self._show()

    def spec(self) -> str:
        """The spec in use, as it is written."""
        return str(self._spec)

    def set_spec(self, text: str) -> None:
        """Show a spec, without telling anyone; raises SettingError where it does not parse."""
        self._spec = StrategySpec.parse(text)
        self._show()

    def set_temperature(self, temperature: float) -> None:
        """The sampling temperature in use: not every rule goes with it."""
        self._temperature = temperature
        self._check()

    def set_has_draft(self, has_draft: bool) -> None:
        """Whether a draft model is chosen."""
        self._has_draft = has_draft
        self._check()

    # ------------------------------------------------------------------ building

    def _build_verification(self, theme: Theme, layout: QVBoxLayout) -> None:
        heading = QLabel("Verification")
        heading.setProperty("role", "strong")
        self._rule = Segmented(theme, "Verification", [AUTO, *Verification])
        self._rule.picked.connect(self._rule_chosen)
        self._rule_words = QLabel()
        self._rule_words.setProperty("role", "caption")
        self._rule_words.setWordWrap(True)
        row = QHBoxLayout()
        row.addWidget(self._rule)
        row.addStretch()
        layout.addSpacing(8)
        layout.addWidget(heading)
        layout.addLayout(row)
        layout.addWidget(self._rule_words)

    def _build_text(self, theme: Theme, layout: QVBoxLayout) -> None:
        heading = QLabel("As text")
        heading.setProperty("role", "strong")
        self._text = QLineEdit()
        self._text.setProperty("kind", "mono")
        self._text.setAccessibleName("Strategy as text")
        self._text.setToolTip("name:key=value, joined by + in order of precedence")
        self._text.textEdited.connect(self._typed)
        copy = IconButton(theme, "copy", "Copy the strategy")
        copy.clicked.connect(self._copy)
        self._text_error = QLabel()
        self._text_error.setProperty("role", "error")
        self._text_error.setWordWrap(True)
        self._text_error.hide()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._text, 1)
        row.addWidget(copy)
        layout.addSpacing(8)
        layout.addWidget(heading)
        layout.addLayout(row)
        layout.addWidget(self._text_error)

    # ------------------------------------------------------------------ what the user does

    @Slot()
    def _picked(self) -> None:
        name = next(name for name, row in self._rows.items() if row.button.isChecked())
        parts = () if name == NONE else (StrategyPart(name, self._params(name)),)
        self._change(dataclasses.replace(self._spec, parts=parts))

    @Slot()
    def _form_changed(self) -> None:
        if all(self._forms[part.name].valid() for part in self._spec.parts):
            parts = tuple(
                StrategyPart(part.name, self._forms[part.name].value()) for part in self._spec.parts
            )
            self._change(dataclasses.replace(self._spec, parts=parts))

    @Slot(str)
    def _rule_chosen(self, choice: str) -> None:
        rule = None if choice == AUTO else Verification(choice)
        self._change(dataclasses.replace(self._spec, verification=rule))

    @Slot(str)
    def _typed(self, text: str) -> None:
        try:
            spec = StrategySpec.parse(text)
        except SettingError as error:
            self._show_text_error(str(error))
            return
        self._show_text_error("")
        if spec != self._spec:
            self._spec = spec
            self._show_choices()
            self.spec_changed.emit(self.spec())

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.spec())

    # ------------------------------------------------------------------ showing

    def _params(self, name: str) -> object:
        """What the strategy's form holds, so that a strategy picked again has its settings."""
        form = self._forms[name]
        return form.value() if form.valid() else KINDS[name].params()

    def _change(self, spec: StrategySpec) -> None:
        changed = spec != self._spec
        self._spec = spec
        self._show()
        if changed:
            self.spec_changed.emit(self.spec())

    def _show(self) -> None:
        # Text that the user is typing is left as it is; `_typed` shows the choices only.
        self._text.setText(self.spec())
        self._show_text_error("")
        self._show_choices()

    def _show_choices(self) -> None:
        params = {part.name: part.params for part in self._spec.parts}
        names = list(params) or [NONE]
        # Several strategies at once come by text only: then no single one is the chosen one.
        self._group.setExclusive(False)
        for name, row in self._rows.items():
            row.button.setChecked(names == [name])
        self._group.setExclusive(True)
        for name, form in self._forms.items():
            form.setVisible(name in params)
            self._headings[name].setVisible(name in params)
            if name in params and self._shown.get(name) != params[name]:
                self._shown[name] = params[name]
                # What the user just typed is left as it is written, and so is what is wrong.
                if not form.valid() or form.value() != params[name]:
                    form.set_value(params[name])
        self._rule.set_choice(str(self._spec.verification or AUTO))
        self._rule_words.setText(RULES[self._rule.choice()])
        self._check()

    def _show_text_error(self, text: str) -> None:
        self._text_error.setText(text)
        self._text_error.setVisible(bool(text))
        set_role(self._text, state="wrong" if text else "")

    def _check(self) -> None:
        """Say what will not go together with the rest of the set-up."""
        try:
            self._spec.verification_at(self._temperature)
        except SettingError as error:
            self._notice.show_error(error.message, error.hint)
            return
        if self._spec.needs_draft and not self._has_draft:
            self._notice.show_error(
                "This strategy needs a draft model, and none is chosen.",
                "Choose one from the draft chip, or another strategy.",
            )
            return
        self._notice.clear()
