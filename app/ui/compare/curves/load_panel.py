"""The panel behind "Load": how many requests the servers get, at once or a second, and limits."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace
from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit

from app.base import numbers as words
from app.lab.experiment import Experiment
from app.lab.load.levels import Limits, LoadPlan, parse_levels, parse_limits, parse_rates, server_lanes_of
from app.ui.compare.curves.curves_panel import CurvesPanel
from app.ui.widgets.fields.typing import Typing

WORDS = (
    "Sends this many requests to each server among the lanes, and measures tokens/s of all and of one, "
    "latency, acceptance, and where drafting stops paying. Separate numbers with commas."
)
KINDS = {
    "Requests at once": ("1,2,4,8", "As an answer ends, the next prompt is sent, until all are asked."),
    "Requests a second": ("0.5,1,2", "Prompts are sent at random times, as people do (a Poisson process)."),
}
LIMITS = {"first_token": "First token within", "inter_token": "95 % of tokens within"}
LIMITS_WORDS = (
    "Limits in seconds, if any. The goodput counts the requests a second that keep them. The second limit is "
    "for the time since the token before."
)


class LoadPanel(CurvesPanel):
    """The numbers of requests, and what an answer must keep to count for the goodput."""

    def __init__(self, lanes: Callable[[], Experiment]) -> None:
        """`lanes` returns the experiment of Run; it raises SettingError."""
        super().__init__("Load", WORDS, "Load", "Measure the load", "Show the last load")
        self._lanes = lanes
        self.kind = QComboBox()
        self.kind.setAccessibleName("What the load is given in")
        for kind, (_suggested, tip) in KINDS.items():
            self.kind.addItem(kind)
            self.kind.setItemData(self.kind.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.kind.setToolTip("\n".join(f"{kind}: {tip}" for kind, (_suggested, tip) in KINDS.items()))
        self.kind.currentIndexChanged.connect(self._switched)
        self.line.insertWidget(1, self.kind)
        self.limits = {name: QLineEdit() for name in LIMITS}
        limits = QHBoxLayout()
        limits.setSpacing(12)
        for name, box in self.limits.items():
            label = QLabel(LIMITS[name])
            label.setBuddy(box)
            box.setProperty("kind", "mono")
            box.setPlaceholderText("none")
            box.setAccessibleName(f"{LIMITS[name]}, in seconds")
            box.setToolTip(LIMITS_WORDS)
            Typing(box, box.textEdited).settled.connect(self.check)
            limits.addWidget(label)
            limits.addWidget(box, 1)
            limits.addWidget(QLabel("s"))
        self.lines.addLayout(limits)

    def suggested(self) -> str:
        return KINDS[self.kind.currentText()][0]

    def plan(self) -> tuple[Experiment, LoadPlan]:
        typed = {name: box.text().strip() for name, box in self.limits.items()}
        asked = ",".join(f"{name}={text}" for name, text in typed.items() if text)
        limits = parse_limits(asked) if asked else Limits()
        text = self.numbers.text()
        by_rate = self.kind.currentIndex() == 1
        load = LoadPlan(rates=parse_rates(text)) if by_rate else LoadPlan(parse_levels(text))
        return server_lanes_of(self._lanes()), replace(load, limits=limits)

    def amount_words(self) -> str:
        experiment, load = self.plan()
        lanes, repeats = len(experiment.lanes), experiment.repeats
        each = sum(len(turns) for level in load.levels for turns in load.burst_of(level, experiment.prompts))
        factors = (
            words.count(lanes, "server lane"),
            words.count(len(load.levels), "load"),
            words.count(repeats, "repeat"),
        )
        return f"{' × '.join(factors)}: {words.count(lanes * repeats * each, 'request')}"

    @Slot()
    def _switched(self) -> None:
        """Suggest numbers of the other kind: those of the first would mean something else."""
        self.numbers.setText(self.suggested())
        self.check()
