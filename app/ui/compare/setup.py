"""The set-up of a measurement, the experiment that it makes, and how it is saved."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from app.base.files import decode_kept, put_aside, read_file, write_atomic
from app.base.paths import make_folder
from app.engine.errors import SettingError
from app.engine.params import check_params, param
from app.engine.strategy import NONE
from app.lab.depths import without_depths
from app.lab.experiment import MOST_LANES, Experiment, Lane, Pair, Prompt, conversations, make_experiment
from app.lab.suites import Suite
from app.ui.setup.sampling_panel import AnswerOptions

SUGGESTED = ("prompt-lookup", "{}:n_max=4", "prompt-lookup+{}:n_max=4")
"""The lanes of a first set-up: a lookup in the prompt, which costs nothing, a draft, and both."""
SUGGESTED_ALONE = ("prompt-lookup", "suffix", "ngram-mod")
"""The lanes of a first set-up without a draft model."""
_NO_SUITE = Suite("", "", ())  # for the default length of answers to the user's own prompt


class Source(StrEnum):
    """Where the prompts come from."""

    SUITE = "Built in"
    OWN = "My prompt"
    FILE = "My file"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is measured."""

    repeats: int = param(
        3,
        "The number of times that each lane answers each prompt. With fewer than three, an interval needs "
        "three prompts.",
        low=1,
        high=100,
    )
    per_category: int = param(
        1,
        "Number of prompts from each category, in order; 0 uses all. A conversation counts once.",
        low=0,
        high=10_000,
    )
    max_tokens: int = param(
        0,
        "The most tokens of an answer; 0 uses the length set by the prompts.",
        low=0,
        high=1_000_000,
        unit="tokens",
    )


@dataclass(frozen=True, slots=True)
class CompareSetup:
    """All choices for a measurement except the pair, which is the chat's."""

    suite: Suite  # the built-in one
    lanes: tuple[Lane, ...] = ()  # without the baseline
    source: Source = Source.SUITE
    categories: tuple[str, ...] = ()  # of the built-in suite or the file; empty: all
    own: str = ""
    file: Suite | None = None
    chat: bool = True
    amount: Amount = field(default_factory=Amount)
    options: AnswerOptions = field(default_factory=AnswerOptions)  # except max_tokens, which is in `amount`

    @property
    def listed(self) -> Suite | None:
        """The suite that prompts are taken from; None for the user's own prompt."""
        return {Source.SUITE: self.suite, Source.FILE: self.file, Source.OWN: None}[self.source]

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts that are measured."""
        listed = self.listed
        if self.source is Source.OWN:
            return (Prompt(self.own.strip()),) if self.own.strip() else ()
        if listed is None:
            return ()
        taken: Counter[str | None] = Counter()
        kept: list[Prompt] = []
        for turns in conversations(listed.prompts):
            category = turns[0].category
            if self.categories and category not in self.categories:
                continue
            if self.amount.per_category and taken[category] >= self.amount.per_category:
                continue
            taken[category] += 1
            kept += turns
        return tuple(kept)

    @property
    def max_tokens(self) -> int:
        """The greatest length of an answer: the chosen one, otherwise that of the prompts."""
        listed = self.listed
        return self.amount.max_tokens or (listed or _NO_SUITE).max_tokens

    @property
    def title(self) -> str:
        """The prompts in a few words."""
        listed = self.listed
        if self.source is Source.OWN:
            return "My prompt"
        if listed is None:
            return "no file"
        return ", ".join(self.categories) if 0 < len(self.categories) < 3 else listed.title

    def experiment(self, pair: Pair, drafters: tuple[str, ...] = ()) -> Experiment:
        """The experiment that Run measures; raises SettingError."""
        if not self.prompts:
            raise SettingError(*self._why_no_prompt())
        return make_experiment(
            Experiment(
                pair=pair,
                lanes=self.lanes,
                prompts=self.prompts,
                sampling=self.options.sampling,
                max_tokens=self.max_tokens,
                repeats=self.amount.repeats,
                chat=self.chat,
                stop=self.options.stop,
                drafters=drafters,
                title=self.title,
            )
        )

    def _why_no_prompt(self) -> tuple[str, str]:
        if self.source is Source.OWN:
            return "There is no prompt.", "Write one, or choose built-in prompts."
        if self.source is Source.FILE:
            return "There is no file of prompts.", "Choose one, or choose built-in prompts."
        return "There is no prompt.", "Choose at least one category."


def first_setup(suite: Suite, drafter: str | None) -> CompareSetup:
    """A new user's set-up, which gives a real result after one press of Run. `drafter` is the strategy for
    the pair's draft, None without one."""
    specs = SUGGESTED if drafter else SUGGESTED_ALONE
    return CompareSetup(suite, tuple(Lane(spec.format(drafter)) for spec in specs), chat=suite.chat)


def setup_of(experiment: Experiment, before: CompareSetup) -> CompareSetup:
    """The set-up that an experiment was made from, as far as it can be reconstructed."""
    lanes = tuple(
        lane
        for index, lane in enumerate(experiment.lanes)
        if lane.strategy != NONE or experiment.pair_of(index).is_server
    )
    again = Suite(
        experiment.title,
        experiment.title or "Earlier prompts",
        without_depths(experiment),
        max_tokens=experiment.max_tokens,
        chat=experiment.chat,
    )
    return dataclasses.replace(
        before,
        lanes=lanes,
        source=Source.FILE,
        file=again,
        categories=(),
        chat=experiment.chat,
        amount=Amount(experiment.repeats, 0),
        options=AnswerOptions(experiment.sampling, stop=experiment.stop),
    )


def changes(measured: Experiment, now: Experiment, *, of_lanes: bool) -> list[str]:
    """The parts in which two experiments differ, each in a few words; a different seed does not count."""
    seed = measured.sampling.seed
    parts: dict[str, Callable[[Experiment], object]] = {
        "the pair": lambda experiment: experiment.pair,
        "lanes": lambda experiment: experiment.lanes if of_lanes else (),
        "prompts": lambda experiment: (without_depths(experiment), experiment.chat),
        "sampling": lambda experiment: (dataclasses.replace(experiment.sampling, seed=seed), experiment.stop),
        "the amount": lambda experiment: (experiment.repeats, experiment.max_tokens),
    }
    return [name for name, part in parts.items() if part(measured) != part(now)]


_VERSION = 1


class KeptSetup:
    """The file of the set-up. It only names a built-in suite, because its prompts are part of the app."""

    def __init__(self, path: Path, suites: Sequence[Suite]) -> None:
        """The first of `suites` replaces a suite that no longer exists."""
        self._path = path
        self._suites = tuple(suites)

    def load(self) -> tuple[CompareSetup | None, str]:
        """The saved set-up or None, and a sentence on what was wrong with its file or ""."""
        try:
            kept = decode_kept(read_file(self._path), dict[str, Any], _VERSION)
            named = {suite.name: suite for suite in self._suites}
            suite = named.get(str(kept.get("suite")), self._suites[0])
            return _checked(msgspec.convert(kept | {"suite": suite}, CompareSetup)), ""
        except FileNotFoundError:
            return None, ""
        except (OSError, ValueError) as error:
            return None, put_aside(self._path, "The set-up of Compare", error)

    def save(self, setup: CompareSetup) -> None:
        """Save atomically; raises UserError if the folder cannot be used, and OSError."""
        kept = {**msgspec.to_builtins(setup), "suite": setup.suite.name, "version": _VERSION}
        make_folder(self._path.parent)
        write_atomic(self._path, msgspec.json.encode(kept))


def _checked(kept: CompareSetup) -> CompareSetup:
    """The set-up as read; raises ValueError for values that the panels would refuse."""
    try:
        check_params(kept.amount)
        check_params(kept.options.sampling)
    except SettingError as error:
        raise ValueError(str(error)) from error
    if not 0 < len(kept.lanes) < MOST_LANES:
        raise ValueError("it has no lanes, or too many")
    return kept
