"""What can be asked for under load: numbers of requests at once, on lanes that are servers'."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.engine.errors import SettingError
from app.lab.experiment import Experiment, Prompt, conversations, make_experiment

MOST_AT_ONCE = 256
"""More would measure this program's threads."""


def parse_levels(text: str) -> tuple[int, ...]:
    """Levels such as "1, 2, 4, 8"; raises SettingError."""
    words = [word.strip() for word in text.split(",")]
    known = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 9]
    if len(known) != len(words):
        raise SettingError(
            f"“{text.strip()}” is no list of loads.", "Allowed: whole numbers of 1 or more, as 1,2,4."
        )
    return checked_levels(known)


def checked_levels(levels: Sequence[int]) -> tuple[int, ...]:
    """The levels in increasing order; raises SettingError for one that is no number of requests."""
    if not levels or min(levels) < 1 or max(levels) > MOST_AT_ONCE:
        raise SettingError(
            "A load is a number of requests at once.", f"Allowed: 1 to {MOST_AT_ONCE}, such as 1,2,4,8."
        )
    return tuple(sorted(set(levels)))


def burst_of(level: int, prompts: Sequence[Prompt]) -> list[tuple[int, ...]]:
    """The prompts of a burst by their indices, a tuple for each conversation, whose turns wait for each
    other: all prompts, and at least two conversations for each request at once."""
    places = iter(range(len(prompts)))
    every = [tuple(next(places) for _turn in turns) for turns in conversations(prompts)]
    return [every[at % len(every)] for at in range(max(len(every), 2 * level))]


def server_lanes_of(experiment: Experiment) -> Experiment:
    """The experiment with its servers' lanes alone. Raises SettingError where there is none."""
    pairs = [experiment.pair_of(lane) for lane in range(len(experiment.lanes))]
    lanes = [
        msgspec.structs.replace(lane, pair=pair)
        for lane, pair in zip(experiment.lanes, pairs, strict=True)
        if pair.is_server
    ]
    if not lanes or lanes[0].pair is None:
        raise SettingError(
            "Only servers answer several requests at once.", "Add a running server to the lanes."
        )
    first = lanes[0].pair
    return make_experiment(msgspec.structs.replace(experiment, pair=first).with_lanes(lanes))
