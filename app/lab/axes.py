"""The settings that an experiment can vary, and a sweep: one strategy over a grid of two of them.

The settings are the strategy's, the sampler's, and both models' load options. A key is a name of the strategy
grammar (n_max, PART.n_max, verify, length), a sampler setting or a load option, as on the command line. A key
that ends in `_draft` is the draft's. target and draft are model files. Keys joined by + take the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from app.engine.errors import SettingError
from app.engine.lengths.registry import LENGTHS
from app.engine.params import Param, params_of
from app.engine.rules.registry import RULES
from app.engine.strategy import NONE, StrategySpec, run_keys
from app.engine.types import LIKE_TARGET, ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, make_experiment
from app.lab.report.report import Cell, SweepFacts

MOST_VALUES = 256
DRAFT = "_draft"
FILES = ("target", "draft")
TOGETHER = "+"
BOTH_CACHES = f"cache_type_k{TOGETHER}cache_type_v"


def _numbers_and_choices(owner: type[object]) -> dict[str, Param]:
    """The parameters whose values are numbers, switches or a choice. (A list may contain the comma that
    separates an axis's values.) All runs share the seed."""
    found = {param.name: param for param in params_of(owner) if param.kind is not str or param.choices}
    return {name: param for name, param in found.items() if name != "seed"}


LOADING = _numbers_and_choices(ModelOptions)
DRAWING = _numbers_and_choices(Sampling)

Resolve = Callable[[str], str]
"""A model's written name -> its path."""


class Axis(msgspec.Struct, frozen=True):
    """One setting and its values, as text."""

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


def keys_of(strategy: str) -> dict[str, Param]:
    """The settings that can be varied besides the model files, by unambiguous keys: the strategy's, load
    options, the sampler's. Raises SettingError for an invalid strategy."""
    parts = StrategySpec.parse(strategy).parts
    every = [(part.name, param) for part in parts for param in params_of(type(part.params))]
    names = [param.name for _, param in every]
    keys = {
        param.name if names.count(param.name) == 1 else f"{part}.{param.name}": param for part, param in every
    }
    if parts:
        for key, rules in (("verify", list(RULES)), ("length", list(LENGTHS))):
            keys[key] = Param(key, str, rules[0], "", choices=tuple(rules))
    caches = {BOTH_CACHES: LOADING["cache_type_k"]}
    drafts = {name + DRAFT: param for name, param in LOADING.items()}
    return keys | caches | LOADING | drafts | DRAWING


def is_of_strategy(key: str) -> bool:
    """Whether a key belongs to the strategy: a chat can adopt a strategy, but not load options."""
    return not any(_model_key(name) or name in DRAWING for name in _names_in(key))


def turned(lane: Lane, own: Pair, sampling: Sampling, key: str, value: str, resolve: Resolve = str) -> Lane:
    """The lane with one setting changed; its pair and sampling are by default `own` and `sampling`. Raises
    SettingError, which lists what is allowed."""
    for name in _names_in(key):
        pair, drawing = lane.pair or own, lane.sampling or sampling
        if _model_key(name):
            lane = msgspec.structs.replace(lane, pair=_loaded_with(pair, name, value, resolve))
        elif name in DRAWING:
            changed: dict[str, Any] = {name: DRAWING[name].parse(value)}
            lane = msgspec.structs.replace(lane, sampling=replace(drawing, **changed))
        else:
            lane = msgspec.structs.replace(lane, strategy=with_value(lane.strategy, name, value))
    return lane


def with_value(strategy: str, key: str, value: str) -> str:
    """The strategy with one setting changed; raises SettingError, which lists what is allowed."""
    spec = StrategySpec.parse(strategy)
    if own := [param for param in params_of(type(spec.length)) if param.name == key]:
        changes: dict[str, Any] = {key: own[0].parse(value)}
        return str(replace(spec, length=replace(spec.length, **changes)))
    if key == "length":
        return str(spec.with_length(value))
    if key in run_keys():
        told = StrategySpec.parse(f"none:{key}={value}")
        return str(replace(spec, verification=told.verification))
    part_name, dot, name = key.rpartition(".")
    having = [
        index
        for index, part in enumerate(spec.parts)
        if (not dot or part.name == part_name) and name in _names(part.params)
    ]
    if len(having) != 1:
        every = [f"{part.name}.{setting}" for part in spec.parts for setting in _names(part.params)]
        problem = "is in several parts of" if having else "is not a setting of"
        loading = f"{', '.join([*FILES, *LOADING])} (with {DRAFT} for the draft's)"
        allowed = ", ".join([*every, *run_keys(), loading, *DRAWING])
        raise SettingError(f"{key} {problem} {strategy}.", f"Allowed: {allowed}.")
    index = having[0]
    part = spec.parts[index]
    described = next(param for param in params_of(type(part.params)) if param.name == name)
    changed = replace(part, params=replace(part.params, **{name: described.parse(value)}))
    parts = (*spec.parts[:index], changed, *spec.parts[index + 1 :])
    return str(replace(spec, parts=parts))


def lane_name(strategy: str, values: Sequence[tuple[str, str]]) -> str:
    """The name of a lane with these values: the strategy with its own keys, then the others."""
    others = [f"{key}={file_name(value)}" for key, value in values if not is_of_strategy(key)]
    names = [name for key, _ in values for name in _names_in(key)]
    return ", ".join([StrategySpec.parse(strategy).written(names), *others])


def file_name(value: str) -> str:
    """A value as shown: a file without its folder."""
    return value.replace("\\", "/").rsplit("/", 1)[-1]


def _loaded_with(pair: Pair, name: str, value: str, resolve: Resolve) -> Pair:
    """The pair with a different file or load option. Raises SettingError."""
    if name == "target":
        return Pair(replace(pair.target, path=resolve(value)), pair.draft)
    if name == "draft":
        alike = ModelOptions("", **{name: getattr(pair.target, name) for name in LIKE_TARGET})
        return Pair(pair.target, replace(pair.draft or alike, path=resolve(value)))
    option = name.removesuffix(DRAFT)
    changed: dict[str, Any] = {option: LOADING[option].parse(value)}
    if name != option:
        if pair.draft is None:
            raise SettingError(f"{name} needs a draft model.", "Choose a draft.")
        return Pair(pair.target, replace(pair.draft, **changed))
    draft = pair.draft
    if draft and option in LIKE_TARGET and getattr(draft, option) == getattr(pair.target, option):
        draft = replace(draft, **changed)
    return Pair(replace(pair.target, **changed), draft)


def _model_key(name: str) -> bool:
    return name in FILES or name.removesuffix(DRAFT) in LOADING


def _names_in(key: str) -> Iterator[str]:
    """The names joined in a key. Load options and sampler settings may have hyphens, as on the command
    line."""
    for written in key.split(TOGETHER):
        name = written.strip()
        plain = name.replace("-", "_")
        yield plain if _model_key(plain) or plain in DRAWING else name


def _names(params: object) -> list[str]:
    return [param.name for param in params_of(type(params))]


def _values(written: str) -> tuple[str, ...]:
    low, dots, high = written.partition("..")
    if dots and low.strip().isdigit() and high.strip().isdigit():
        return tuple(str(n) for n in range(int(low), int(high) + 1)[: MOST_VALUES + 1])
    return tuple(dict.fromkeys(value.strip() for value in written.split(",") if value.strip()))


MOST_CELLS = 256

Values = tuple[tuple[str, str], ...]
"""(key, value) of both axes."""


def make_sweep(
    base: Experiment, strategy: str, x: Axis, y: Axis, resolve: Resolve = str
) -> tuple[Experiment, SweepFacts]:
    """The experiment of a sweep, and its grid; `base` has no lanes. `resolve` makes paths of model names.

    Each load setting is loaded once. Each load setting and each sampler setting has its own baseline. A cell
    with contradictory values is left out, and says why. Raises SettingError if no cell is left, and for more
    than MOST_CELLS.
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
    """Raise SettingError for an unknown key, or if no value is allowed: a mistake, not an empty cell."""
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
    """What distinguishes a cell's lane from others. (The seed is drawn later and is the same for all.)"""
    pair, sampling = _setting_of(experiment, lane)
    return lane.strategy, pair, replace(sampling, seed=0)
