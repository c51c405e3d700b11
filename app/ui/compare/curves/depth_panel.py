"""The panel behind "Depth": how many tokens of a document stand before each prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.engine.types import ModelOptions
from app.lab.depths import at_depths, check_room, parse_depths, room_for_depth, suggested_depths
from app.lab.experiment import Experiment, make_experiment
from app.lab.suites import Suite
from app.ui.compare.curves.curves_panel import CurvesPanel
from app.ui.compare.words import amount_words

WORDS = (
    "Puts this many tokens of a long document before each prompt, and measures how speed-up, acceptance and "
    "the time to the first token change with the length of the context. Separate depths with commas; "
    "4k stands for 4,096."
)


class DepthPanel(CurvesPanel):
    """The depths, and whether the context has room for them."""

    def __init__(
        self, lanes: Callable[[], Experiment], suite: Suite, n_ctx: Callable[[ModelOptions], int]
    ) -> None:
        """`lanes` returns the experiment of Run and raises SettingError; `suite` has the long documents;
        `n_ctx` returns the context size that a target was loaded with, 0 where it was not loaded."""
        super().__init__("Depth", WORDS, "Depths", "Measure the depths", "Show the last depths")
        self._lanes = lanes
        self._suite = suite
        self._n_ctx = n_ctx

    def suggested(self) -> str:
        return suggested_depths(room_for_depth(self._lanes(), self._n_ctx))

    def plan(self) -> tuple[Experiment, Sequence[int]]:
        base, depths = self._lanes(), parse_depths(self.numbers.text())
        check_room(depths, room_for_depth(base, self._n_ctx), base.max_tokens)
        return make_experiment(at_depths(base, depths, self._suite)), depths

    def amount_words(self) -> str:
        experiment, depths = self.plan()
        prompts = len(experiment.prompts) // len(depths)
        return amount_words(len(experiment.lanes), prompts, experiment.repeats, len(depths))
