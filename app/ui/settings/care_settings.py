"""For when something goes wrong: a report to copy, and a look through the user's data."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout

from app.ui.settings.section import SettingsSection, words_label
from app.ui.theme import Theme
from app.ui.widgets.fields.switch import Switch
from app.ui.widgets.work.ask_first import AskFirst, Confirmation

REPORT = (
    "Versions, devices, settings and the last lines of the log, as text for a message. Nothing that was said "
    "is in it."
)
CHECK = "Looks for what is damaged or left over in chats, lists and measurements. Nothing is changed."
COPIED = "The report is on the clipboard."


class CareSettings(SettingsSection):
    """Two buttons and what they found; `CareController` does the work."""

    report_requested = Signal(bool)
    """Copy a report; whether with the texts of the settings."""
    check_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._report_words = words_label(REPORT)
        self._texts = Switch(theme, "With the system prompt and the stop strings")
        self._texts.setToolTip("Otherwise the report has only their lengths")
        copy = QPushButton("Copy a report")
        copy.clicked.connect(lambda: self.report_requested.emit(self._texts.isChecked()))
        self._check_words = words_label(CHECK)
        self._check = QPushButton("Check my data")
        self._check.clicked.connect(self.check_requested)
        self.asking = AskFirst()
        report = _beside(self._report_words, copy)
        texts = QHBoxLayout()
        texts.setSpacing(12)
        texts.addWidget(self._texts)
        texts.addWidget(words_label("With the system prompt and the stop strings of the settings"), 1)
        report.addLayout(texts)
        check = _beside(self._check_words, self._check)
        check.addWidget(self.asking)
        self.add_row("Report", report)
        self.add_row("Check and repair", check)

    @property
    def report_words(self) -> str:
        return self._report_words.text()

    @property
    def check_words(self) -> str:
        return self._check_words.text()

    def show_report(self, words: str) -> None:
        """Say what became of the report."""
        self._report_words.setText(words)

    def show_check(self, words: str, *, busy: bool = False) -> None:
        """Say what was found or done; while `busy` no second check begins."""
        self.asking.withdraw()
        self._check_words.setText(words)
        self._check.setEnabled(not busy)

    def ask(self, found: Confirmation) -> None:
        """Ask whether what was found is to be mended."""
        self.asking.ask(lambda: found)


def _beside(words: QLabel, button: QPushButton) -> QVBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(8)
    row.addWidget(words, 1)
    row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
    column = QVBoxLayout()
    column.setSpacing(8)
    column.addLayout(row)
    return column
