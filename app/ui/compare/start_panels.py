"""The panels of Sweep, Depth, Load and Tune, and their common base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QLabel, QLayout, QLineEdit, QWidget

from app.base import numbers
from app.engine.errors import SettingError
from app.engine.params import Param, param, params_of
from app.engine.types import ModelOptions
from app.lab.axes import Axis, keys_of, make_sweep
from app.lab.depths import at_depths, check_room, parse_depths, room_for_depth, suggested_depths
from app.lab.experiment import Experiment, make_experiment
from app.lab.load.levels import Limits, LoadPlan, parse_levels, parse_limits, parse_rates, server_lanes_of
from app.lab.report.report import SweepFacts
from app.lab.suites import Suite
from app.ui.compare.words import amount_words
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.field import NumberField, combo
from app.ui.widgets.keys import Typing


class StartPanel(QWidget):
    """A title, a description, the derived class's fields, the amount, and two buttons."""

    wanted = Signal()
    """Start the measurement of what is `asked`."""
    last_wanted = Signal()
    """Show the last measurement."""

    def __init__(self, title: str, words: str, start: str, last: str) -> None:
        super().__init__()
        self._title = kit.label(title, "title")
        self._words = kit.label(words, "secondary", wrap=True)
        self.amount = kit.label(wrap=True)
        self.start = kit.button(start, self.wanted, kind="primary")
        self.last = kit.button(last, self.last_wanted)
        self.last.hide()

    def lay_out(self, fields: QLayout) -> None:
        """Put the fields of the derived class in their place; Tab goes from them to the buttons."""
        row = kit.row((self.amount, 1), self.last, self.start, spacing=12)
        kit.column(self._title, self._words, fields, row, spacing=12, on=self)

    def amount_words(self) -> str:
        """How much would be measured; raises SettingError."""
        raise NotImplementedError

    def open(self) -> None:
        """Prepare the panel, which opens."""
        self.check()

    def check(self) -> None:
        """Say how much will be measured, or what is wrong."""
        try:
            words, role = self.amount_words(), "secondary"
        except SettingError as error:
            words, role = str(error), "error"
        self.start.setEnabled(role != "error")
        self.amount.setText(words)
        set_role(self.amount, role=role)

    def asked(self) -> tuple[object, ...]:
        """The arguments of the measurement; raises SettingError."""
        raise NotImplementedError


def code_field(name: str, check: Callable[[], object], hint: str = "") -> QLineEdit:
    """A line for numbers or settings; `check` is called when typing pauses."""
    made = kit.field(name, hint)
    made.setProperty("kind", "mono")
    Typing(made, made.textEdited).settled.connect(check)
    return made


class CurvesPanel(StartPanel):
    """A derived class says what the numbers are, and how much they measure."""

    def __init__(self, title: str, words: str, label: str, start: str, last: str) -> None:
        super().__init__(title, words, start, last)
        self._typed = False
        self.numbers = code_field(label, self.check)
        self.numbers.textEdited.connect(self._edited)
        self.name = QLabel(label)
        self.name.setBuddy(self.numbers)
        self.line = kit.row(self.name, (self.numbers, 1), spacing=12)
        self.lines = kit.column(self.line, spacing=12)
        self.lay_out(self.lines)

    def suggested(self) -> str:
        """Numbers to begin with; raises SettingError."""
        raise NotImplementedError

    def plan(self) -> tuple[Experiment, object]:
        """What would be measured, and the numbers; raises SettingError."""
        raise NotImplementedError

    def open(self) -> None:
        """Suggest numbers, unless some were typed, and say how much will be measured."""
        if not self._typed:
            try:
                self.numbers.setText(self.suggested())
            except SettingError:
                self.numbers.clear()  # the check says what is wrong
        self.check()

    def _edited(self) -> None:
        self._typed = True

    def asked(self) -> tuple[object, ...]:
        return self.plan()


DEPTH_WORDS = (
    "Puts this many tokens of a long document before each prompt. Measures how speed-up, acceptance and the "
    "time to the first token change with the length of the context. Separate depths with commas; 4k stands "
    "for 4,096."
)


class DepthPanel(CurvesPanel):
    """The depths, and whether the context has room for them."""

    def __init__(
        self, lanes: Callable[[], Experiment], suite: Suite, n_ctx: Callable[[ModelOptions], int]
    ) -> None:
        """`lanes` returns the experiment of Run and raises SettingError. `suite` has the long documents.
        `n_ctx` returns a target's loaded context size, 0 if not loaded."""
        super().__init__("Depth", DEPTH_WORDS, "Depths", "Measure the depths", "Show the last depths")
        self._lanes = lanes
        self._suite = suite
        self._n_ctx = n_ctx

    def suggested(self) -> str:
        return suggested_depths(room_for_depth(self._lanes(), self._n_ctx))

    def plan(self) -> tuple[Experiment, Sequence[int]]:
        base, depths = self._lanes(), parse_depths(self.numbers.text())
        check_room(depths, room_for_depth(base, self._n_ctx), base.max_tokens)
        return make_experiment(at_depths(base, depths, self._suite)), depths

    def asked(self) -> tuple[object, ...]:
        return self.plan()[:1]

    def amount_words(self) -> str:
        experiment, depths = self.plan()
        prompts = len(experiment.prompts) // len(depths)
        return amount_words(len(experiment.lanes), prompts, experiment.repeats, len(depths))


LOAD_WORDS = (
    "Sends requests to each server lane under these loads. Measures tokens/\N{WORD JOINER}s of all requests "
    "and of one, latency, acceptance, and the load at which drafting stops paying off. Separate numbers with "
    "commas."
)
KINDS = {
    "Requests at once": ("1,2,4,8", "When an answer ends, the next prompt is sent, until all are sent."),
    "Requests per second": ("0.5,1,2", "Prompts are sent at random times, as people do (a Poisson process)."),
}
LIMITS = {"first_token": "First token within", "inter_token": "95 % of tokens within"}
LIMITS_WORDS = (
    "Limits in seconds, if any. Goodput is the number of requests per second within them. The second limit "
    "applies to the time since the previous token."
)


class LoadPanel(CurvesPanel):
    """The numbers of requests, and the limits of an answer that counts for the goodput."""

    def __init__(self, lanes: Callable[[], Experiment]) -> None:
        """`lanes` returns the experiment of Run; it raises SettingError."""
        super().__init__("Load", LOAD_WORDS, "Load", "Measure the load", "Show the last load")
        self._lanes = lanes
        self.kind = QComboBox()
        self.kind.setAccessibleName("What the load is given in")
        for kind, (_suggested, tip) in KINDS.items():
            self.kind.addItem(kind)
            self.kind.setItemData(self.kind.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.kind.setToolTip("\n".join(f"{kind}: {tip}" for kind, (_suggested, tip) in KINDS.items()))
        self.kind.currentIndexChanged.connect(self._switched)
        self.line.insertWidget(1, self.kind)
        self.limits: dict[str, QLineEdit] = {}
        limits = kit.row(spacing=12)
        for name, words in LIMITS.items():
            box = self.limits[name] = code_field(f"{words}, in seconds", self.check, "none")
            box.setToolTip(LIMITS_WORDS)
            label = QLabel(words)
            label.setBuddy(box)
            kit.fill(limits, label, (box, 1), QLabel("s"))
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
            numbers.count(lanes, "server lane"),
            numbers.count(len(load.levels), "load"),
            numbers.count(repeats, "repeat"),
        )
        return f"{' × '.join(factors)}: {numbers.count(lanes * repeats * each, 'request')}"

    def _switched(self) -> None:
        """Suggest numbers of the other kind: those of the first would mean something else."""
        self.numbers.setText(self.suggested())
        self.check()


TUNE_WORDS = (
    "Finds the fastest of about 50 settings (25 without a draft) on the prompts chosen here. A few answers "
    "show which settings cannot win; these are not run. It then says how long measuring the others takes. "
    "Slow settings drop out, and the rest get longer answers. With several kinds of prompt, each kind gets "
    "its own result."
)


@dataclass(frozen=True, slots=True)
class SearchTime:
    """How long a search may take."""

    seconds: int = param(60, "Time for the search; loading is not part of it.", low=5, high=86_400, unit="s")


class TunePanel(StartPanel):
    """The budget of a search, and a button to start it."""

    def __init__(self, base: Callable[[], Experiment]) -> None:
        """`base` returns the experiment without its lanes; it raises SettingError."""
        super().__init__("Tune for me", TUNE_WORDS, "Search", "Show the last result")
        self._base = base
        self.seconds = NumberField(params_of(SearchTime)[0])
        self.seconds.edited.connect(self.check)
        self.lay_out(kit.column(self.seconds))

    def check(self) -> None:
        self.start.setEnabled(self.seconds.error() is None)

    def asked(self) -> tuple[object, ...]:
        return self._base(), float(self.seconds.value())


SWEEP_WORDS = (
    "Measures every combination of the values of two settings, on the prompts chosen here. They can belong "
    "to the strategy, the sampler or the models, which are loaded once for each value. Separate values with "
    "commas; 1..8 stands for every whole number from 1 to 8."
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

    def __init__(self, name: str, check: Callable[[], object]) -> None:
        self.name = QLabel(name)
        self.key = combo(f"Parameter, {name}")
        self.values = code_field(f"Values, {name}", check)

    @property
    def axis(self) -> Axis:
        """The axis; raises SettingError for invalid values."""
        return Axis.parse(f"{self.key.currentText()}={self.values.text()}")


class SweepPanel(StartPanel):
    """The set-up of a sweep, checked while it is typed."""

    def __init__(self, base: Callable[[], Experiment], strategy: str) -> None:
        """`base` returns the experiment without its lanes; it raises SettingError."""
        super().__init__("Sweep", SWEEP_WORDS, "Measure the grid", "Show the last grid")
        self._base = base
        self._keys: dict[str, Param] = {}
        self.strategy = code_field("Strategy", self._strategy_edited)
        self.strategy.setText(strategy)
        self.across, self.down = AxisRow("across", self.check), AxisRow("down", self.check)
        grid = kit.grid((12, 8), stretch=2)
        grid.addWidget(QLabel("strategy"), 0, 0)
        grid.addWidget(self.strategy, 0, 1, 1, 2)
        for line, axis in enumerate((self.across, self.down), start=1):
            axis.key.activated.connect(partial(self._key_chosen, axis))
            for place, widget in enumerate((axis.name, axis.key, axis.values)):
                grid.addWidget(widget, line, place)
        self.lay_out(grid)
        self._strategy_edited()

    def asked(self) -> tuple[Experiment, SweepFacts]:
        return make_sweep(self._base(), self.strategy.text(), self.across.axis, self.down.axis)

    def amount_words(self) -> str:
        experiment, facts = self.asked()
        cells = sum(cell.lane is not None for cell in facts.cells)
        runs = numbers.count(len(experiment.jobs()), "cold run")
        bases = "the baseline" if facts.baselines == 1 else numbers.count(facts.baselines, "baseline")
        return f"{numbers.count(cells, 'cell')} and {bases}: {runs}"

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

    def _key_chosen(self, row: AxisRow, _index: int) -> None:
        self._suggest(row)
        self.check()

    def _suggest(self, row: AxisRow) -> None:
        key = row.key.currentText()
        param = self._keys.get(key)
        row.values.setText(suggested(key, param) if param is not None else "")
        row.values.setCursorPosition(0)  # a field too short for all values shows the first ones


def _second(keys: Mapping[str, Param]) -> int:
    """The index of the parameter for the rows: the first of a different kind than the columns'."""
    kinds = [param.kind for param in keys.values()]
    return next((at for at, kind in enumerate(kinds) if kind is not kinds[0]), min(1, len(kinds) - 1))
