"""The names of lanes beside each other: with their models, where these differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

from app.engine.strategy import SERVER, StrategySpec, is_synthetic
from app.engine.types import ModelOptions
from app.lab.experiment import Experiment


def lane_names(experiment: Experiment) -> tuple[str, ...]:
    """The name of every lane.

    A label is used as it is. A strategy is followed by its target and its draft, where the experiment has
    several; so is a label that two lanes share. A synthetic lane says so.
    """
    labels = Counter(lane.label for lane in experiment.lanes)
    names = [
        lane.label if lane.label and labels[lane.label] == 1 else lane.name + where
        for lane, where in zip(experiment.lanes, _wheres(experiment), strict=True)
    ]
    return tuple(
        f"{name} (synthetic)" if is_synthetic(lane.strategy) else name
        for name, lane in zip(names, experiment.lanes, strict=True)
    )


def _wheres(experiment: Experiment) -> list[str]:
    """The models of each lane, in words, as far as they tell lanes apart."""
    pairs = [experiment.pair_of(lane) for lane in range(len(experiment.lanes))]
    drafting = [
        lane.strategy != SERVER and StrategySpec.parse(lane.strategy).needs_draft for lane in experiment.lanes
    ]
    targets = list(dict.fromkeys(pair.target for pair in pairs))
    used = [pair.draft for pair, needed in zip(pairs, drafting, strict=True) if needed]
    drafts = list(dict.fromkeys(draft for draft in used if draft is not None))
    wheres = []
    for pair, needed in zip(pairs, drafting, strict=True):
        where = f" on {_short(pair.target, targets)}" if len(targets) > 1 else ""
        if needed and pair.draft and len(drafts) > 1:
            where += f" with {_short(pair.draft, drafts)}"
        wheres.append(where)
    return wheres


def _short(model: ModelOptions, among: Sequence[ModelOptions]) -> str:
    """A model's file name; with its folder where another file has that name, and with options that differ."""
    parts = _parts(model.path)
    same_name = [candidate for candidate in among if _parts(candidate.path)[-1] == parts[-1]]
    text = "/".join(parts[-2:]) if any(candidate.path != model.path for candidate in same_name) else parts[-1]
    same_file = [candidate for candidate in among if candidate.path == model.path]
    for field in fields(model):
        if len({getattr(candidate, field.name) for candidate in same_file}) > 1:
            text += f" {field.name}={getattr(model, field.name)}"
    return text


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")
