"""The possible loads: numbers of requests at once or a second, on servers' lanes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import msgspec

from app.base import numbers
from app.engine.errors import SettingError
from app.lab.experiment import Experiment, Prompt, conversations, make_experiment

MOST_AT_ONCE = 256
"""A higher number would measure this program's threads."""


MOST_A_SECOND = 100.0
_RATE_SECONDS = 10.0  # of arrivals, at least; and at least
_RATE_CONVERSATIONS = 10


class Limits(msgspec.Struct, frozen=True):
    """The limits of a request that counts for the goodput, in seconds; None for no limit."""

    first_token: float | None = None  # from the request to its first token
    inter_token: float | None = None  # the 95th percentile of its own times between tokens

    def __bool__(self) -> bool:
        return self != Limits()

    def words(self) -> str:
        """ "the first token within 500 ms and 95 % of the tokens within 50.0 ms of the one before"."""
        first = f"the first token within {numbers.milliseconds(self.first_token)}"
        between = f"95 % of the tokens within {numbers.milliseconds(self.inter_token)} of the one before"
        known = [(self.first_token, first), (self.inter_token, between)]
        return numbers.listed([said for limit, said in known if limit is not None])


class LoadPlan(msgspec.Struct, frozen=True):
    """The loads to measure: either this many requests at once, or this many a second at random times."""

    at_once: tuple[int, ...] = ()
    rates: tuple[float, ...] = ()
    limits: Limits = Limits()

    @property
    def levels(self) -> tuple[float, ...]:
        return self.rates or self.at_once

    def arrivals(self, level: float, conversations: int, key: str) -> tuple[float, ...]:
        """When the conversations of a burst are sent, in seconds from its start. For a rate, it is a Poisson
        process drawn by `key`, the same for every lane; () for requests at once."""
        if not self.rates:
            return ()
        drawn = random.Random(f"{key} {level:g}")
        gaps = [0.0, *(drawn.expovariate(level) for _conversation in range(conversations - 1))]
        return tuple(itertools.accumulate(gaps))

    def burst_of(self, level: float, prompts: Sequence[Prompt]) -> list[tuple[int, ...]]:
        """The indices of a burst's prompts, a tuple for each conversation, whose turns wait for each other.
        It has all prompts, and at least two conversations for each request at once. For a rate, it has at
        least ten conversations, and ten seconds of them."""
        places = iter(range(len(prompts)))
        every = [tuple(next(places) for _turn in turns) for turns in conversations(prompts)]
        least = max(_RATE_CONVERSATIONS, _RATE_SECONDS * level) if self.rates else 2 * level
        return [every[at % len(every)] for at in range(max(len(every), math.ceil(least)))]


def level_words(level: float, *, by_rate: bool) -> str:
    """ "4 at once", "0.5/s"."""
    return f"{level:g}/s" if by_rate else f"{level:g} at once"


def parse_levels(text: str) -> tuple[int, ...]:
    """Levels such as "1, 2, 4, 8", in increasing order; raises SettingError."""
    words = [word.strip() for word in text.split(",")]
    known = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 9]
    if len(known) != len(words):
        raise SettingError(
            f"“{text.strip()}” is not a list of loads.", "Allowed: whole numbers of 1 or more, as 1,2,4."
        )
    check_load(load := LoadPlan(tuple(sorted(set(known)))))
    return load.at_once


def parse_rates(text: str) -> tuple[float, ...]:
    """Requests a second such as "0.5, 1, 2", in increasing order; raises SettingError."""
    rates = [numbers.positive(word) for word in text.split(",")]
    known = [rate for rate in rates if rate is not None]
    if len(known) != len(rates):
        raise SettingError(
            f"“{text.strip()}” is not a list of rates.", "Allowed: numbers above 0, as 0.5,1,2."
        )
    check_load(load := LoadPlan(rates=tuple(sorted(set(known)))))
    return load.rates


def parse_limits(text: str) -> Limits:
    """Limits such as "first_token=0.5, inter_token=0.05", in seconds; raises SettingError."""
    found: dict[str, float] = {}
    for word in text.split(","):
        name, _, value = map(str.strip, word.partition("="))
        seconds = numbers.positive(value)
        if name not in Limits.__struct_fields__ or seconds is None:
            names = numbers.listed(Limits.__struct_fields__)
            raise SettingError(
                f"“{word.strip()}” is not a limit.", f"Allowed: {names} with seconds, as first_token=0.5."
            )
        found[name] = seconds
    return Limits(**found)


def check_load(load: LoadPlan) -> None:
    """Raise SettingError for an invalid number of requests."""
    if load.rates and not all(0 < rate <= MOST_A_SECOND for rate in load.rates):
        raise SettingError(
            "A rate is a number of requests a second.",
            f"Allowed: above 0, at most {MOST_A_SECOND:g}, such as 0.5,1,2.",
        )
    if not load.rates and (not load.at_once or min(load.at_once) < 1 or max(load.at_once) > MOST_AT_ONCE):
        raise SettingError(
            "A load is a number of requests at once.", f"Allowed: 1 to {MOST_AT_ONCE}, such as 1,2,4,8."
        )


def server_lanes_of(experiment: Experiment) -> Experiment:
    """The experiment with only its servers' lanes. Raises SettingError if there are none."""
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
