"""Lanes: their names, the file that they are kept in, and those of a server."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec

from app.base.files import decode, read_file, reason
from app.engine.errors import SettingError
from app.engine.params import check_params
from app.engine.strategy import NONE, SERVER, StrategySpec, is_synthetic
from app.engine.types import ModelOptions, PairInfo
from app.lab.experiment import Experiment, Lane, Pair


def lane_names(experiment: Experiment) -> tuple[str, ...]:
    """The name of every lane.

    A label is used unchanged. A strategy is followed by its target and draft if the experiment has several;
    so is a label that two lanes share. A synthetic lane says so.
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
    """The models of each lane in words, if they distinguish lanes."""
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
    """A model's file name, with its folder if a different file has that name, and with options that
    differ."""
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


class LaneEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lane in the file: models are paths or other names, or objects with load options."""

    strategy: str
    label: str = ""
    target: str | dict[str, Any] | None = None
    draft: str | dict[str, Any] | None = None


_entries = msgspec.json.Decoder(list[LaneEntry])


def path_beside(written: str, folder: Path) -> str:
    """The absolute path; a relative one starts at the folder."""
    return os.path.abspath(folder / written)


def read_lanes(path: Path, own: Pair, resolve: Callable[[str, Path], str] = path_beside) -> tuple[Lane, ...]:
    """The lanes of a JSON list of `LaneEntry`.

    A lane without models runs on `own`; with only a draft, on own's target with that draft; with only a
    target, without a draft. `resolve` makes a path from a written name and the file's folder. If the file
    gives only a path, the model is loaded with own's options. Raises SettingError.
    """
    try:
        entries = decode(_entries, read_file(path))
    except (OSError, ValueError) as error:  # a DamagedError is a ValueError
        raise SettingError(
            f"{path.name} cannot be read: {reason(error)}.",
            'Write a JSON list of {"strategy": "...", "target": "T.gguf", "draft": "D.gguf"}.',
        ) from error

    def options(written: str | dict[str, Any], like: ModelOptions) -> ModelOptions:
        given = replace(like, path=written) if isinstance(written, str) else _options(written, path)
        return replace(given, path=resolve(given.path, path.parent))

    def pair(entry: LaneEntry) -> Pair | None:
        if entry.target is None and entry.draft is None:
            return None
        target = own.target if entry.target is None else options(entry.target, own.target)
        draft = None if entry.draft is None else options(entry.draft, own.draft or own.target)
        return Pair(target, draft)

    return tuple(Lane(entry.strategy, entry.label, pair(entry)) for entry in entries)


def _options(written: dict[str, Any], file: Path) -> ModelOptions:
    """A model with its options; raises SettingError for an unknown option or a value out of range."""
    allowed = [field.name for field in fields(ModelOptions)]
    unknown = [name for name in written if name not in allowed]
    if unknown:
        raise SettingError(
            f"{file.name} cannot be used: a model has no option “{unknown[0]}”.",
            f"Allowed: {', '.join(allowed)}.",
        )
    try:
        given = msgspec.convert(written, ModelOptions)
    except msgspec.ValidationError as error:
        raise SettingError(f"{file.name} cannot be used: {error}.", "Correct the model's options.") from None
    check_params(given)
    return given


def server_lanes(info: PairInfo) -> tuple[Lane, ...]:
    """The lanes of a server described by `info`: as configured, and without drafts if it can turn them off. A
    server that does not draft is a baseline, also for other servers of its model."""
    server, target = info.server, info.target
    assert server is not None
    pair = Pair(ModelOptions(server.address))
    model = f"{target.name} {target.quantisation} {target.n_params} {target.size}"
    plain = Lane(NONE, f"{server.kind}: none", pair, model=model)
    if not server.speculation:
        return (plain,)
    drafting = Lane(SERVER, f"{server.kind}: {'+'.join(server.speculation)}", pair, model=model)
    return (plain, drafting) if server.switches_off else (drafting,)


def with_server(lanes: Sequence[Lane], info: PairInfo) -> tuple[Lane, ...]:
    """`lanes` with a server's lanes in place of its earlier ones, or at the end; the user's labels stay."""
    pair = Pair(ModelOptions(info.target.path))
    assert info.server is not None
    before = {lane.strategy: lane.label for lane in lanes if lane.pair == pair}
    given = {name: label for name, label in before.items() if not label.startswith(f"{info.server.kind}: ")}
    new = [
        msgspec.structs.replace(lane, label=given.get(lane.strategy, lane.label))
        for lane in server_lanes(info)
    ]
    at = next((index for index, lane in enumerate(lanes) if lane.pair == pair), len(lanes))
    others = [[lane for lane in part if lane.pair != pair] for part in (lanes[:at], lanes[at:])]
    return (*others[0], *new, *others[1])
