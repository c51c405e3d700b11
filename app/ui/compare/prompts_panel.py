"""The panels behind the prompts chip and the pair chip: the prompts, how often each is answered, and the
pair of the chat."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QPlainTextEdit, QWidget

from app.base import numbers
from app.engine.errors import UserError
from app.lab.suites import Suite, read_suite
from app.ui.compare.setup import Amount, CompareSetup, Source
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import QuietCombo
from app.ui.widgets.form import ParamForm
from app.ui.widgets.kit import WrapLayout
from app.ui.widgets.notice import Notice
from app.ui.widgets.segmented import Segmented, Switch

PAIR_WORDS = (
    "Lanes use the chat's pair and load options. Choose a different pair in Chat, or give a lane its own. "
    "The chat's models are unloaded during a measurement and loaded again afterwards."
)


class PairPanel(QWidget):
    """Shows the files of the pair, and where to change them."""

    place_wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._pair = kit.label(wrap=True, plain=True)
        words = kit.label(PAIR_WORDS, "secondary", wrap=True)
        chat = kit.button("Change it in Chat", lambda: self.place_wanted.emit("chat"))
        models = kit.button("Find models", lambda: self.place_wanted.emit("models"))
        row = kit.row(chat, models, kit.Spring(1), spacing=8)
        kit.column(kit.label("Pair", "title"), self._pair, words, row, spacing=10, on=self)

    def set_pair(self, target: str, draft: str) -> None:
        """Show the files."""
        self._pair.setText(f"Target: {target}\nDraft: {draft or 'none'}")


ChoosePrompts = Callable[[QWidget], str]
"""(parent) -> path, or "" when nothing was chosen."""


def ask_for_prompts(parent: QWidget) -> str:
    """Let the user choose a file of prompts with the system's dialog."""
    kinds = "Prompts (*.json *.txt);;All files (*)"
    return QFileDialog.getOpenFileName(parent, "Choose prompts", str(Path.home()), kinds)[0]


class PromptsPanel(QWidget):
    """The choice of prompts. Every valid change applies at once."""

    changed = Signal(object)
    """The changed CompareSetup."""

    def __init__(self, theme: Theme, suites: Sequence[Suite]) -> None:
        super().__init__()
        self._theme = theme
        self._suites = tuple(suites)
        self.choose: ChoosePrompts = ask_for_prompts
        self._setup = CompareSetup(self._suites[0])
        self._boxes: list[QCheckBox] = []
        self.source = Segmented(theme, "Prompts", tuple(Source))
        self.source.picked.connect(self._pick_source)
        self.suite = QuietCombo()
        self.suite.setAccessibleName("Built-in prompts")
        self.suite.addItems([suite.title for suite in self._suites])
        self.suite.activated.connect(self._pick_suite)
        self.own = QPlainTextEdit()
        self.own.setProperty("kind", "field")
        self.own.setAccessibleName("My prompt")
        self.own.setPlaceholderText("The prompt that every lane answers")
        self.own.setTabChangesFocus(True)
        self.own.setFixedHeight(120)
        self.own.textChanged.connect(self._own_edited)
        self.open = kit.button("Choose a file…", self._ask)
        self._about = kit.label("", "caption", wrap=True, plain=True)
        self._categories = QWidget()
        self._wrap = WrapLayout(self._categories, 4)
        self.chat = Switch(theme, "Chat template")
        self.chat.clicked.connect(self._chat_clicked)
        chat_words = QLabel("Wrap each prompt as a message by the model's chat template")
        self.amount = ParamForm(theme, Amount)
        self.amount.changed.connect(self._amount_edited)
        self._notice = Notice(theme)
        kit.column(
            kit.label("Prompts", "title"),
            self.source,
            self.suite,
            self.own,
            kit.row(self.open, kit.Spring(1)),
            self._notice,
            self._about,
            self._categories,
            kit.row((chat_words, 1), self.chat, spacing=8),
            self.amount,
            spacing=10,
            on=self,
        )
        self.set_setup(self._setup)

    def set_setup(self, setup: CompareSetup) -> None:
        """Show a set-up, without a signal."""
        self._setup = setup
        self.source.set_choice(setup.source)
        if setup.suite in self._suites:
            self.suite.setCurrentIndex(self._suites.index(setup.suite))
        if self.own.toPlainText() != setup.own:
            self.own.blockSignals(True)
            self.own.setPlainText(setup.own)
            self.own.blockSignals(False)
        self.chat.setChecked(setup.chat)
        if not self.amount.valid() or self.amount.value() != setup.amount:  # the cursor keeps its place
            self.amount.set_value(setup.amount)
        self._show()

    def _show(self) -> None:
        setup = self._setup
        self.suite.setVisible(setup.source is Source.SUITE)
        self.own.setVisible(setup.source is Source.OWN)
        self.open.setVisible(setup.source is Source.FILE)
        listed = setup.listed
        categories = listed.categories if listed is not None else ()
        if [box.text() for box in self._boxes] != list(categories):
            for box in self._boxes:
                self._wrap.removeWidget(box)
                box.hide()
                box.deleteLater()
            self._boxes = [QCheckBox(category) for category in categories]
            for box in self._boxes:
                box.clicked.connect(partial(self._categories_clicked, box))
                self._wrap.addWidget(box)
        for box in self._boxes:
            box.setChecked(not setup.categories or box.text() in setup.categories)
        self._categories.setVisible(bool(self._boxes))
        if listed is not None:
            chosen = numbers.count(len(setup.prompts), "prompt")
            self._about.setText(
                f"{listed.about} {chosen} of {len(listed.prompts)} taken. Answers take up to "
                f"{numbers.count(setup.max_tokens, 'token')}. {' '.join(listed.notes)}".strip()
            )
        else:
            self._about.setText("A JSON list, or text with one prompt per line.")
        self._about.setVisible(setup.source is not Source.OWN)

    def _change(self, **changes: object) -> None:
        self._setup = dataclasses.replace(self._setup, **changes)  # type: ignore[arg-type]
        self._show()
        self.changed.emit(self._setup)

    def _pick_source(self, choice: str) -> None:
        self._notice.clear()
        source = Source(choice)
        listed = dataclasses.replace(self._setup, source=source).listed
        chat = self._setup.chat if listed is None else listed.chat
        self.chat.setChecked(chat)
        self._change(source=source, categories=(), chat=chat)

    def _pick_suite(self, index: int) -> None:
        suite = self._suites[index]
        self.chat.setChecked(suite.chat)
        self._change(suite=suite, categories=(), chat=suite.chat)

    def _own_edited(self) -> None:
        self._change(own=self.own.toPlainText())

    def _ask(self) -> None:
        path = self.choose(self)
        if not path:
            return
        try:
            suite = read_suite(Path(path))
        except UserError as error:
            self._notice.tell(error)
            return
        self._notice.clear()
        self.chat.setChecked(suite.chat)
        self.amount.set_value(dataclasses.replace(self._setup.amount, per_category=0))
        self._change(file=suite, categories=(), chat=suite.chat, amount=self.amount.value())

    def _categories_clicked(self, box: QCheckBox, _checked: bool) -> None:
        chosen = tuple(box.text() for box in self._boxes if box.isChecked())
        if not chosen:  # without a category nothing could be measured: the last one stays
            box.setChecked(True)
            return
        self._change(categories=() if len(chosen) == len(self._boxes) else chosen)

    def _chat_clicked(self) -> None:
        self._change(chat=self.chat.isChecked())

    def _amount_edited(self) -> None:
        if self.amount.valid():
            self._change(amount=self.amount.value())
