"""The panel behind "Sweep": a strategy, and some values for two of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QLineEdit

from app.base import numbers
from app.engine.errors import SettingError
from app.engine.params import Param
from app.lab.axes import Axis, keys_of, make_sweep
from app.lab.experiment import Experiment
from app.lab.report.report import SweepFacts
from app.ui.compare.start_panels import StartPanel
from app.ui.widgets.field import QuietCombo
from app.ui.widgets.keys import Typing

Sweep = tuple[Experiment, SweepFacts]
WORDS = (
    "Measures every combination of the values of two settings, on the prompts chosen here. They can be the "
    "strategy's, the sampler's, or those of loading the models, which are loaded once for each value. "
    "Separate values with commas; 1..8 stands for all whole numbers from 1 to 8."
)
_USUAL = {
    "cache_type": "f16,q8_0,q4_0",
    "ctx_size": "2048,4096,8192",
    "batch_size": "512,2048",
    "ubatch_size": "128,512",
    "n_gpu_layers": "0,-1",
    "flash_attn": "on,off",
    "temperature": "0,0.4,0.8",
    "top_p": "0.8,0.9,1",
}
"""Values of settings whose whole range says little, by the beginnings of their keys."""
_STEPS = {int: ("1", "2", "4", "8"), float: ("0", "0.25", "0.5", "0.75"), bool: ("0", "1"), str: ()}


def suggested(key: str, param: Param) -> str:
    """Suggested values of a setting."""
    for name, values in _USUAL.items():
        if key.startswith(name):
            return values
    if param.choices:
        return ",".join(param.choices)
    low = param.low if param.low is not None else float("-inf")
    high = param.high if param.high is not None else float("inf")
    fits = [step for step in _STEPS[param.kind] if low <= float(step) <= high]
    return ",".join(fits) or param.format(param.default)


class AxisRow:
    """A parameter and its values."""

    def __init__(self, name: str) -> None:
        self.name = QLabel(name)
        self.key = QuietCombo()
        self.key.setAccessibleName(f"Parameter, {name}")
        self.values = QLineEdit()
        self.values.setProperty("kind", "mono")
        self.values.setAccessibleName(f"Values, {name}")

    @property
    def axis(self) -> Axis:
        """The axis; raises SettingError for invalid values."""
        return Axis.parse(f"{self.key.currentText()}={self.values.text()}")


class SweepPanel(StartPanel):
    """The set-up of a sweep, checked while it is typed."""

    wanted = Signal(object)
    """Measure this Sweep."""

    def __init__(self, base: Callable[[], Experiment], strategy: str) -> None:
        """`base` returns the experiment without its lanes; it raises SettingError."""
        super().__init__("Sweep", WORDS, "Measure the grid", "Show the last grid")
        self._base = base
        self._keys: dict[str, Param] = {}
        self.strategy = QLineEdit(strategy)
        self.strategy.setProperty("kind", "mono")
        self.strategy.setAccessibleName("Strategy")
        Typing(self.strategy, self.strategy.textEdited).settled.connect(self._strategy_edited)
        self.across, self.down = AxisRow("across"), AxisRow("down")
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(2, 1)
        grid.addWidget(QLabel("strategy"), 0, 0)
        grid.addWidget(self.strategy, 0, 1, 1, 2)
        for line, axis in enumerate((self.across, self.down), start=1):
            axis.key.activated.connect(self._key_chosen)
            Typing(axis.values, axis.values.textEdited).settled.connect(self.check)
            for place, widget in enumerate((axis.name, axis.key, axis.values)):
                grid.addWidget(widget, line, place)
        self.lay_out(grid)
        self._strategy_edited()

    def sweep(self) -> Sweep:
        """The experiment and its grid; raises SettingError."""
        return make_sweep(self._base(), self.strategy.text(), self.across.axis, self.down.axis)

    def amount_words(self) -> str:
        experiment, facts = self.sweep()
        cells = sum(cell.lane is not None for cell in facts.cells)
        runs = numbers.count(len(experiment.jobs()), "cold run")
        bases = "the baseline" if facts.baselines == 1 else numbers.count(facts.baselines, "baseline")
        return f"{numbers.count(cells, 'cell')} and {bases}: {runs}"

    @Slot()
    def _strategy_edited(self) -> None:
        try:
            keys = keys_of(self.strategy.text())
        except SettingError:
            keys = self._keys  # the message below says what is wrong
        if list(keys) != list(self._keys):
            self._keys = keys
            for at, axis in enumerate((self.across, self.down)):
                axis.key.clear()
                axis.key.addItems(list(keys))
                axis.key.setCurrentIndex(_second(keys) if at else 0)
                self._suggest(axis)
        self.check()

    @Slot()
    def _key_chosen(self) -> None:
        self._suggest(self.across if self.sender() is self.across.key else self.down)
        self.check()

    def _suggest(self, row: AxisRow) -> None:
        key = row.key.currentText()
        param = self._keys.get(key)
        row.values.setText(suggested(key, param) if param is not None else "")
        row.values.setCursorPosition(0)  # a field too short for all values shows the first ones

    @Slot()
    def _start(self) -> None:
        self.wanted.emit(self.sweep())


def _second(keys: Mapping[str, Param]) -> int:
    """The index of the parameter for the rows: the first of another kind than the parameter of the
    columns."""
    kinds = [param.kind for param in keys.values()]
    return next((at for at, kind in enumerate(kinds) if kind is not kinds[0]), min(1, len(kinds) - 1))
