"""A sweep: one strategy over a grid of two of its parameters, an experiment with a lane for each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from app.engine.errors import SettingError
from app.engine.lengths.ewma import EwmaParams
from app.engine.params import params_of
from app.engine.strategy import EWMA_KEYS, NONE, RUN_KEYS, StrategySpec
from app.lab.experiment import Experiment, Lane, make_experiment
from app.lab.report.report import Cell, Report, SweepFacts
from app.lab.report.summary import Summary

MOST_CELLS = 256


class Axis(msgspec.Struct, frozen=True):
    """One parameter and its values, as text. `key` is a name such as n_max, PART.n_max where several parts of
    the strategy have it, verify or length."""

    key: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Axis:
        """Read `KEY=V,V,…` or, for whole numbers, `KEY=LOW..HIGH`; raises SettingError."""
        key, equals, written = text.partition("=")
        values = _values(written)
        if not equals or not key.strip() or not values:
            raise SettingError(f"“{text}” is not an axis.", "Write KEY=V,V,… or KEY=LOW..HIGH.")
        return cls(key.strip(), values)


class Heat(msgspec.Struct, frozen=True):
    """One cell with its numbers, for a heat map."""

    cell: Cell
    strategy: str
    name: str = ""  # the strategy with the values of both axes, even defaults
    tokens_per_second: float | None = None
    acceptance_rate: float | None = None
    speedup: float | None = None


def with_value(strategy: str, key: str, value: str) -> str:
    """The strategy with one setting changed; raises SettingError, which lists what is allowed."""
    spec = StrategySpec.parse(strategy)
    if key in EWMA_KEYS:
        bare = str(replace(spec, ewma=EwmaParams()))
        kept = {name: getattr(spec.ewma, name) for name in EWMA_KEYS if name != key}
        told = StrategySpec.parse(f"{bare}:{key}={value}")
        return str(replace(told, ewma=replace(told.ewma, **kept)))
    if key in RUN_KEYS:
        told = StrategySpec.parse(f"none:{key}={value}")
        if key == "verify":
            return str(replace(spec, verification=told.verification))
        return str(replace(spec, length=told.length))
    part_name, dot, name = key.rpartition(".")
    having = [
        index
        for index, part in enumerate(spec.parts)
        if (not dot or part.name == part_name) and name in _names(part.params)
    ]
    if len(having) != 1:
        every = [f"{part.name}.{setting}" for part in spec.parts for setting in _names(part.params)]
        problem = "is in several parts of" if having else "is not a setting of"
        raise SettingError(f"{key} {problem} {strategy}.", f"Allowed: {', '.join([*every, *RUN_KEYS])}.")
    index = having[0]
    part = spec.parts[index]
    described = next(param for param in params_of(type(part.params)) if param.name == name)
    changed = replace(part, params=replace(part.params, **{name: described.parse(value)}))
    parts = (*spec.parts[:index], changed, *spec.parts[index + 1 :])
    return str(replace(spec, parts=parts))


def spelled(strategy: str, keys: Sequence[str]) -> str:
    """The strategy with these settings written out, even defaults."""
    spec = StrategySpec.parse(strategy)
    parts = []
    for part in spec.parts:
        name, *written = str(part).split(":")
        changed = {setting.partition("=")[0]: setting for setting in written}
        for param in params_of(type(part.params)):
            if param.name in changed or {param.name, f"{part.name}.{param.name}"} & set(keys):
                name += ":" + changed.get(param.name, f"{param.name}={param.format(param.default)}")
        parts.append(name)
    run = str(replace(spec, parts=())).removeprefix(NONE)
    if "length" in keys and ":length=" not in run:
        run += f":length={spec.length}"
    for param in params_of(EwmaParams):
        if param.name in keys and f":{param.name}=" not in run:
            run += f":{param.name}={param.format(param.default)}"
    return "+".join(parts) + run


def make_sweep(base: Experiment, strategy: str, x: Axis, y: Axis) -> tuple[Experiment, SweepFacts]:
    """The experiment of a sweep, and its grid; `base` has no lanes.

    A cell whose values contradict each other is left out, and says why. Raises SettingError where no cell is
    left, and for more than MOST_CELLS.
    """
    if x.key == y.key:
        raise SettingError(f"Both axes are {x.key}.", "Choose two different settings.")
    if len(x.values) * len(y.values) > MOST_CELLS:
        raise SettingError(
            f"{len(x.values)} × {len(y.values)} cells are too many.", f"Allowed: {MOST_CELLS} in all."
        )
    for axis in (x, y):
        _check_axis(strategy, axis)
    temperature = base.sampling.temperature
    grid = [
        (a, b, *_cell_strategy(strategy, ((x.key, a), (y.key, b)), temperature))
        for b in y.values
        for a in x.values
    ]
    asked = [Lane(spec, spelled(spec, (x.key, y.key))) for _, _, spec, refused in grid if not refused]
    if not asked:
        raise SettingError(f"No cell can be measured: {grid[0][3]}")
    experiment = make_experiment(base.with_lanes(asked), most_lanes=MOST_CELLS + 1)
    lanes = {lane.strategy: index for index, lane in enumerate(experiment.lanes)}
    cells = tuple(Cell(a, b, None if refused else lanes[spec], refused) for a, b, spec, refused in grid)
    return experiment, SweepFacts(x.key, y.key, x.values, y.values, cells)


def heat_map(report: Report) -> tuple[Heat, ...]:
    """The cells of a sweep with their numbers, row by row (y), column by column (x)."""
    return heats(report.sweep, report.summary) if report.sweep is not None else ()


def heats(facts: SweepFacts, summary: Sequence[Summary]) -> tuple[Heat, ...]:
    """The cells with their numbers, from the summaries alone: there is no report while a sweep runs."""
    heat = []
    for cell in facts.cells:
        if cell.lane is None:
            heat.append(Heat(cell, ""))
            continue
        row = summary[cell.lane]
        heat.append(
            Heat(
                cell,
                row.strategy,
                spelled(row.strategy, (facts.x, facts.y)),
                row.tokens_per_second.median if row.tokens_per_second else None,
                row.acceptance_rate,
                row.speedup.factor if row.speedup else None,
            )
        )
    return tuple(heat)


def best_cell(cells: tuple[Heat, ...]) -> Heat | None:
    """The cell with the largest speed-up; None where nothing was measured."""
    known = [cell for cell in cells if cell.speedup is not None]
    return max(known, key=lambda cell: cell.speedup or 0.0, default=None)


def _check_axis(strategy: str, axis: Axis) -> None:
    """Raise SettingError for an unknown key, or where no value is allowed: a mistake, not an empty cell."""
    problem: SettingError | None = None
    for value in axis.values:
        try:
            with_value(strategy, axis.key, value)
            return
        except SettingError as error:
            problem = problem or error
    if problem is not None:
        raise problem


def _cell_strategy(strategy: str, values: Sequence[tuple[str, str]], temperature: float) -> tuple[str, str]:
    """(the strategy of a cell, why there is none); one of the two is empty"""
    try:
        for key, value in values:
            strategy = with_value(strategy, key, value)
        StrategySpec.parse(strategy).verification_at(temperature)
        return strategy, ""
    except SettingError as error:
        return "", str(error)


def _names(params: object) -> list[str]:
    return [param.name for param in params_of(type(params))]


def _values(written: str) -> tuple[str, ...]:
    low, dots, high = written.partition("..")
    if dots and low.strip().isdigit() and high.strip().isdigit():
        return tuple(str(n) for n in range(int(low), int(high) + 1)[: MOST_CELLS + 1])
    return tuple(dict.fromkeys(value.strip() for value in written.split(",") if value.strip()))
