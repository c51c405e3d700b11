"""A sweep: one strategy over a grid of two settings, an experiment with a lane for each cell."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from app.engine.errors import SettingError
from app.engine.strategy import NONE, StrategySpec
from app.engine.types import Sampling
from app.lab.axes import Axis, Resolve, is_of_strategy, lane_name, turned
from app.lab.experiment import Experiment, Lane, Pair, make_experiment
from app.lab.report.report import Cell, SweepFacts

MOST_CELLS = 256

Values = tuple[tuple[str, str], ...]
"""(key, value) of both axes."""


def make_sweep(
    base: Experiment, strategy: str, x: Axis, y: Axis, resolve: Resolve = str
) -> tuple[Experiment, SweepFacts]:
    """The experiment of a sweep, and its grid; `base` has no lanes. `resolve` makes paths of model names.

    Each load setting is loaded once and has a baseline of its own, as has each sampler setting. A cell whose
    values contradict each other is left out, and says why. Raises SettingError where no cell is left, and for
    more than MOST_CELLS.
    """
    if x.key == y.key:
        raise SettingError(f"Both axes are {x.key}.", "Choose two different settings.")
    if len(x.values) * len(y.values) > MOST_CELLS:
        raise SettingError(
            f"{len(x.values)} × {len(y.values)} cells are too many.", f"Allowed: {MOST_CELLS} in all."
        )
    for axis in (x, y):
        _check_axis(base, strategy, axis, resolve)
    grid = [
        (a, b, *_cell_lane(base, strategy, ((x.key, a), (y.key, b)), resolve))
        for b in y.values
        for a in x.values
    ]
    asked = [(lane, ((x.key, a), (y.key, b))) for a, b, lane, _ in grid if lane is not None]
    if not asked:
        raise SettingError(f"No cell can be measured: {grid[0][3]}")
    # The first cell's setting is the experiment's: no other one is loaded beside the cells'.
    first = _setting_of(base, asked[0][0])
    own = msgspec.structs.replace(base, pair=first[0], sampling=first[1], loads_once=True)
    lanes = [lane for cell, values in asked for lane in (_baseline(cell, values), cell)]
    experiment = make_experiment(own.with_lanes(lanes), most_lanes=2 * MOST_CELLS)
    places = {_place(experiment, lane): index for index, lane in enumerate(experiment.lanes)}
    cells = tuple(
        Cell(a, b, places[_place(own, lane)], "", lane.label) if lane else Cell(a, b, None, refused)
        for a, b, lane, refused in grid
    )
    baselines = len({experiment.baseline_of(cell.lane) for cell in cells if cell.lane is not None})
    return experiment, SweepFacts(x.key, y.key, x.values, y.values, cells, baselines)


def _cell_lane(base: Experiment, strategy: str, values: Values, resolve: Resolve) -> tuple[Lane | None, str]:
    """(the lane of a cell, why there is none)"""
    try:
        lane = Lane(strategy)
        for key, value in values:
            lane = turned(lane, base.pair, base.sampling, key, value, resolve)
        spec = StrategySpec.parse(lane.strategy)
        pair, sampling = _setting_of(base, lane)
        spec.verification_at(sampling.temperature)
        spec.check_lengths()
        if spec.needs_draft and pair.draft is None:
            raise SettingError(f"{spec} needs a draft model.", "Choose a draft.")
        return Lane(str(spec) if spec.parts else NONE, lane_name(lane.strategy, values), pair, sampling), ""
    except SettingError as error:
        return None, str(error)


def _baseline(cell: Lane, values: Values) -> Lane:
    """Strategy none with a cell's load and sampler settings."""
    others = [(key, value) for key, value in values if not is_of_strategy(key)]
    return Lane(NONE, lane_name(NONE, others), cell.pair, cell.sampling)


def _check_axis(base: Experiment, strategy: str, axis: Axis, resolve: Resolve) -> None:
    """Raise SettingError for an unknown key, or where no value is allowed: a mistake, not an empty cell."""
    problem: SettingError | None = None
    for value in axis.values:
        try:
            turned(Lane(strategy), base.pair, base.sampling, axis.key, value, resolve)
            return
        except SettingError as error:
            problem = problem or error
    if problem is not None:
        raise problem


def _setting_of(experiment: Experiment, lane: Lane) -> tuple[Pair, Sampling]:
    return lane.pair or experiment.pair, lane.sampling or experiment.sampling


def _place(experiment: Experiment, lane: Lane) -> tuple[str, Pair, Sampling]:
    """What tells a cell's lane from the others: the seed, which is drawn later, is the same for all."""
    pair, sampling = _setting_of(experiment, lane)
    return lane.strategy, pair, replace(sampling, seed=0)
