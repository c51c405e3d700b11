"""The panel behind "Load": how many requests the servers get at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.base import numbers as words
from app.lab.experiment import Experiment
from app.lab.load.levels import burst_of, parse_levels, server_lanes_of
from app.ui.compare.curves.curves_panel import CurvesPanel

WORDS = (
    "Sends so many requests at once to each server among the lanes, and measures tokens/s of all and of one, "
    "acceptance, and where drafting stops paying. Each answer makes room for the next prompt, until all are "
    "asked. Separate numbers with commas."
)
SUGGESTED = "1,2,4,8"


class LoadPanel(CurvesPanel):
    """The numbers of requests at once."""

    def __init__(self, lanes: Callable[[], Experiment]) -> None:
        """`lanes` returns the experiment of Run; it raises SettingError."""
        super().__init__("Load", WORDS, "Requests at once", "Measure the load", "Show the last load")
        self._lanes = lanes

    def suggested(self) -> str:
        return SUGGESTED

    def plan(self) -> tuple[Experiment, Sequence[int]]:
        return server_lanes_of(self._lanes()), parse_levels(self.numbers.text())

    def amount_of(self, experiment: Experiment, numbers: Sequence[int]) -> str:
        lanes, repeats = len(experiment.lanes), experiment.repeats
        each = sum(len(turns) for level in numbers for turns in burst_of(level, experiment.prompts))
        factors = (
            words.count(lanes, "server lane"),
            words.count(len(numbers), "load"),
            words.count(repeats, "repeat"),
        )
        return f"{' × '.join(factors)}: {words.count(lanes * repeats * each, 'request')}"
