"""The panels of the prompts chip and the pair chip: the prompts, their repeats, and the chat's pair. Also the
part of the lanes panel that makes quantisations of its target."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QWidget

from app.base import numbers
from app.base.numbers import count, file_size, listed, percent
from app.engine.errors import SettingError, UserError
from app.hub.quantiser import USUAL, Quantiser, QuantPlan
from app.lab.experiment import MOST_LANES, Pair
from app.lab.suites import Suite, read_suite
from app.ui.compare.exports import Saving
from app.ui.compare.setup import Amount, CompareSetup, Source
from app.ui.compare.start_panels import StartPanel
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import combo
from app.ui.widgets.form import ParamForm
from app.ui.widgets.kit import WrapLayout
from app.ui.widgets.notice import Notice
from app.ui.widgets.segmented import Segmented

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
        titles = [suite.title for suite in self._suites]
        self.suite = combo("Built-in prompts", titles, self._pick_suite)
        self.own = kit.text_box("My prompt", "The prompt that every lane answers")
        self.own.setFixedHeight(120)
        self.own.textChanged.connect(lambda: self._change(own=self.own.toPlainText()))
        self.open = kit.button("Choose a file…", self._ask)
        self._about = kit.label("", "caption", wrap=True, plain=True)
        self._categories = QWidget()
        self._wrap = WrapLayout(self._categories, 4)
        self.chat = kit.check(name="Chat template")
        self.chat.clicked.connect(lambda checked: self._change(chat=checked))
        chat_words = QLabel("Format each prompt as a message with the model's chat template")
        self.amount = ParamForm(theme, Amount)
        self.amount.changed.connect(self._amount_edited)
        self._notice = Notice(theme)
        choice = self.source, self.suite, self.own, kit.row(self.open, kit.Spring(1)), self._notice
        chat = kit.row((chat_words, 1), self.chat, spacing=8)
        lower = self._about, self._categories, chat, self.amount
        kit.column(kit.label("Prompts", "title"), *choice, *lower, spacing=10, on=self)
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
            kit.empty(self._wrap)
            self._boxes = [QCheckBox(category) for category in categories]
            for box in self._boxes:
                box.clicked.connect(partial(self._categories_clicked, box))
                self._wrap.addWidget(box)
        for box in self._boxes:
            box.setChecked(not setup.categories or box.text() in setup.categories)
        self._categories.setVisible(bool(self._boxes))
        if listed is not None:
            known = numbers.count(len(listed.prompts), "prompt")
            self._about.setText(
                f"{listed.about} {len(setup.prompts)} of {known} used. Answers have up to "
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

    def _amount_edited(self) -> None:
        if self.amount.valid():
            self._change(amount=self.amount.value())


WORDS = (
    "Makes more quantisations of the chat's target with llama.cpp's quantiser, and a lane for each. Press "
    "Run to find which is fastest with drafts. The files are kept; manage them in Models."
)
_AT_ONCE = MOST_LANES // 2  # each file has a baseline of its own


class QuantsPanel(StartPanel):
    """A box for each quantisation, what making them takes, and a button that makes them or stops."""

    made = Signal(object)
    """Compare these files: (kind, path) of each."""
    told = Signal(str)

    def __init__(self, pair: Callable[[], Pair], folder: Path) -> None:
        """`pair` returns the chat's; files are made in `folder`."""
        super().__init__("Quantisations", WORDS, "Set up the lanes", "")
        self._pair = pair
        self._quantiser = Quantiser(folder)
        self._plan: QuantPlan | None = None  # of all boxes
        self._problem = ""
        self._thread: Saving | None = None
        self._making = False  # rather than planning
        self._stopped = False
        self.boxes = [QCheckBox() for _ in range(1 + len(USUAL))]
        for box in self.boxes:
            box.hide()
            box.toggled.connect(self._chose)
        self.notes = kit.label("", "secondary", wrap=True)
        boxes = kit.row(*self.boxes, kit.Spring(1), spacing=12)
        self.lay_out(kit.column(boxes, self.notes, spacing=12))
        self.told.connect(self.amount.setText)
        self.wanted.connect(self._make)

    @property
    def at_work(self) -> bool:
        """Whether files are being read or made."""
        return self._thread is not None

    def open(self) -> None:
        """List the existing quantisations of the chat's target."""
        if self.at_work:
            return
        target = self._pair().target.path
        self._plan, self._problem = None, ""
        if self._pair().is_server:
            self._failed(UserError("A server's model cannot be quantised here.", "Choose a file in Chat."))
            return

        def plan(stopped: Callable[[], bool]) -> None:
            self._plan = self._quantiser.plan(Path(target), USUAL, stopped)

        self.amount.setText("Reading the file…")
        self._begin(plan, making=False)

    def amount_words(self) -> str:
        chosen = self._chosen()
        if self._problem:
            raise SettingError(self._problem)
        if not 1 < len(chosen.files) <= _AT_ONCE:
            raise SettingError(
                f"Choose 2 to {_AT_ONCE} files.", "Each needs two lanes, one for its baseline."
            )
        missing = [f"{file.kind} {file_size(file.size)}" for file in chosen.missing]
        room = f"{self._quantiser.folder} ({file_size(self._quantiser.free)} free)"
        return f"Writes {listed(missing)} to {room}." if missing else "All files are already here."

    def check(self) -> None:
        if self.at_work:
            return
        super().check()
        chosen = self._chosen()
        made = f"Make {count(len(chosen.missing), 'file')} ({file_size(chosen.size)})"
        self.start.setText(made if chosen.missing else "Set up the lanes")
        warning = self._plan.warning if self._plan else ""
        self.notes.setText(" ".join([*(file.note for file in chosen.files if file.note), warning]))

    def _chosen(self) -> QuantPlan:
        """The plan with the files whose boxes are checked."""
        boxes = zip(self._plan.files if self._plan else (), self.boxes, strict=False)
        return QuantPlan(tuple(file for file, box in boxes if box.isChecked()))

    def _begin(self, work: Callable[[Callable[[], bool]], None], *, making: bool) -> None:
        def run(stopped: Callable[[], bool]) -> None:
            with contextlib.suppress(InterruptedError):
                work(stopped)

        self._making, self._stopped = making, False
        self._thread = Saving(run, "The file")
        self._thread.done.connect(self._done)
        self._thread.failed.connect(self._failed)
        for box in self.boxes:
            box.setEnabled(False)
        self.start.setEnabled(True)
        self.start.setText("Cancel")
        self._thread.start()

    def _done(self) -> None:
        self._failed(UserError("Stopped.", "Files that were complete are kept.") if self._stopped else None)
        plan, chosen = self._plan, self._chosen()
        if self._stopped or plan is None:
            return
        if self._making:
            self.made.emit([(file.kind, str(file.path)) for file in chosen.files])
            return
        for at, box in enumerate(self.boxes):
            box.setVisible(at < len(plan.files))
            box.setChecked(at < min(len(plan.files), _AT_ONCE))
            if at < len(plan.files):
                box.setText(f"{plan.files[at].kind}{'' if at else ', as it is'}")

    def _failed(self, error: UserError | None) -> None:
        if self._thread is not None:
            self._thread.wait()
        self._thread = None
        self._problem = str(error or "")
        for box in self.boxes:
            box.setEnabled(True)
        self.check()

    def _chose(self) -> None:
        self._problem = ""
        self.check()

    def _make(self) -> None:
        if self._thread is not None:
            self._stopped = True
            self.close_work()
            return
        chosen, plan = self._chosen(), self._plan
        assert plan is not None

        def make(stopped: Callable[[], bool]) -> None:
            self._quantiser.make(
                QuantPlan((plan.source, *chosen.missing)),
                lambda file, share: self.told.emit(f"Making {file.kind}: {percent(share, 0)}"),
                stopped,
            )

        self._begin(make, making=True)

    def close_work(self) -> None:
        """Stop before the window closes; no part of a file stays."""
        if self._thread is not None:
            self._thread.end()
