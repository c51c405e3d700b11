"""The head of the Inspector: which answer is shown, and what it was made with."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.ui.inspector.words import answer_facts
from app.ui.state.answer import AnswerModel
from app.ui.widgets.text.elided import ElidedLabel
from app.ui.widgets.text.tips import as_text


class InspectorHead(QWidget):
    """Names the answer; views add their buttons to `buttons`."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ElidedLabel()
        self.title.set_text("Inspector")
        self.title.setProperty("role", "strong")
        self.title.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.facts = ElidedLabel()
        self.facts.setProperty("role", "secondary")
        self.buttons = QHBoxLayout()
        self.buttons.setSpacing(8)
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 12, 24, 12)
        row.setSpacing(12)
        row.addWidget(self.title)
        row.addWidget(self.facts, 1)
        row.addLayout(self.buttons)

    def show_answer(self, answer: AnswerModel | None, name: str, *, held: bool = False) -> None:
        """Describe an answer; None describes nothing. `held`: the engine waits for a step."""
        self.title.set_text(name or "Inspector")
        facts = answer_facts(answer, held=held) if answer is not None else ""
        self.facts.set_text(facts)
        self.facts.setToolTip(as_text(facts))
