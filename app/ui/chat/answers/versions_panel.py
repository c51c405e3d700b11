"""All versions of an answer in a table: how each was made, how fast it was, and where the texts diverge."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QWidget

from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.ui.theme.style import set_role
from app.ui.transcript.text.answer_words import manner
from app.ui.widgets.words import numbers

WIDTH = 720  # of the panel, in pixels at text scale 1
_TITLES = ("Version", "Strategy", "Tokens", "Acceptance", "Tokens/s", "Text")
_MOST = 40  # characters of the text where two versions diverge


class VersionsPanel(QWidget):
    """One row a version; the one in the chat is what the others are compared with."""

    inspect_asked = Signal(int)  # the version

    def __init__(self, traces: Sequence[Trace | None], shown: int) -> None:
        """`traces` has None where a trace cannot be read; `shown` is the version in the chat."""
        super().__init__()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(len(_TITLES) - 1, 1)
        for column, title in enumerate(_TITLES):
            label = self._put(grid, title, 0, column)
            set_role(label, role="caption")
        for version, trace in enumerate(traces):
            words = [str(version + 1), *_numbers(trace), _difference(traces[shown], trace, version == shown)]
            for column, text in enumerate(words):
                self._put(grid, text, version + 1, column)
            if trace is not None:
                button = QPushButton("Inspect")
                set_role(button, kind="flat")
                button.setAccessibleName(f"Inspect version {version + 1}")
                button.clicked.connect(lambda _checked=False, at=version: self.inspect_asked.emit(at))
                grid.addWidget(button, version + 1, len(_TITLES))

    def _put(self, grid: QGridLayout, text: str, row: int, column: int) -> QLabel:
        label = QLabel(text)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setWordWrap(column == len(_TITLES) - 1)
        number = _TITLES[column] in ("Tokens", "Acceptance", "Tokens/s")
        side = Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft
        grid.addWidget(label, row, column, side if column < len(_TITLES) - 1 else Qt.AlignmentFlag(0))
        return label


def _numbers(trace: Trace | None) -> list[str]:
    if trace is None:
        return [numbers.NONE] * 4
    statistics = Statistics.of_answer(trace)
    return [
        f"{trace.header.strategy}\n{manner(trace.header)}",
        numbers.count(statistics.emitted),
        numbers.percent(statistics.acceptance_rate),
        numbers.significant(statistics.tokens_per_second),
    ]


def _difference(shown: Trace | None, trace: Trace | None, same: bool) -> str:
    """Where the text of a version diverges from that of the shown one."""
    if same:
        return "in the chat"
    if trace is None or shown is None:
        return "The tokens are lost."
    pairs = zip(trace.token_ids, shown.token_ids, strict=False)
    at = next((place for place, (one, other) in enumerate(pairs) if one != other), None)
    if at is None:
        n, m = len(trace.token_ids), len(shown.token_ids)
        return "the same tokens" if n == m else f"the same up to token {min(n, m):,}, where one ends"
    return f"diverges at token {at + 1:,}: “{_from(trace, at)}”"


def _from(trace: Trace, at: int) -> str:
    """The first words of an answer from a token on, in one line."""
    pieces = [token.piece for round in trace.rounds for token in round.emitted][at:]
    words = " ".join(b"".join(pieces).decode(errors="replace").split())
    return words if len(words) <= _MOST else f"{words[:_MOST]}…"
