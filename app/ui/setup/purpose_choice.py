"""“What are you doing?”: a kind of work proposes a strategy, which can be compared with the one in use."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QWidget

from app.engine.explain.purposes import PURPOSES, FirstStrategy, first_strategy
from app.engine.process.messages import PassSeconds
from app.engine.strategy import StrategySpec
from app.ui.widgets import kit

ASK = "Choose a kind of work…"


class PurposeChoice(QWidget):
    """A list of purposes; below the chosen one its reason, and buttons for its strategy."""

    taken = Signal(object)  # StrategySpec
    compared = Signal(object)  # StrategySpec

    def __init__(self) -> None:
        super().__init__()
        self._in_use = ""
        self._files = "", ""  # of target and draft
        self._passes: Callable[[str, str], PassSeconds | None] = lambda target, draft: None
        self._times: PassSeconds | None = None  # what the proposal is based on
        self._first: FirstStrategy | None = None  # what is proposed
        self.choice = QComboBox()
        self.choice.setAccessibleName("What are you doing?")
        self.choice.addItems([ASK, *(purpose.name for purpose in PURPOSES)])
        self.choice.currentIndexChanged.connect(self._show)
        self.reason = kit.label("", "caption", wrap=True, plain=True)
        self.use = kit.button("", self._use)
        self.compare = kit.button(
            "Compare it",
            lambda: self.compared.emit(self._spec),
            tip="Sets up Compare: no drafting, the strategy in use and this one",
        )
        self._comparable = False
        kit.column(
            kit.label("What are you doing?", "strong"),
            (self.choice, 0, Qt.AlignmentFlag.AlignLeft),
            self.reason,
            kit.row(self.use, self.compare, kit.Spring(), spacing=8),
            spacing=6,
            on=self,
        )
        self._show()

    def set_context(
        self, in_use: str, target: str, draft: str, passes: Callable[[str, str], PassSeconds | None]
    ) -> None:
        """Set the strategy in use, the files of the pair, "" for no draft, and what tells the times of their
        passes."""
        before = self._in_use, self._files, self._times
        self._in_use, self._files, self._passes = in_use, (target, draft), passes
        if (self._in_use, self._files, self._known_times()) != before:
            self._show()

    def offer_compare(self) -> None:
        """Offer to compare from now on: `compared` is heard."""
        self._comparable = True
        self._show()

    def _known_times(self) -> PassSeconds | None:
        """The times of the pair's passes, if a kind of work is chosen."""
        return self._passes(*self._files) if self.choice.currentIndex() > 0 else None

    @property
    def _spec(self) -> StrategySpec | None:
        return self._first.spec if self._first is not None else None

    def _show(self) -> None:
        at = self.choice.currentIndex() - 1
        self._first, self._times = None, self._known_times()
        if at >= 0:
            self._first = first_strategy(PURPOSES[at], *self._files, self._times)
        first, spec = self._first, self._spec
        self.reason.setText(first.reason if first is not None else "")
        self.reason.setVisible(first is not None)
        taken = str(spec) == self._in_use
        self.use.setVisible(spec is not None)
        self.compare.setVisible(bool(spec is not None and spec.parts) and self._comparable)
        self.use.setText("In use" if taken else f"Use {spec}")
        self.use.setEnabled(not taken)

    def _use(self) -> None:
        self.choice.setFocus()  # the button can no longer be pressed, and Qt would go on to just anything
        self.taken.emit(self._spec)
