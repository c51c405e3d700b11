"""A first strategy for each kind of work.

Rounds were measured on prompts of each kind; this machine's pass times turn them into speed-ups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import harmonic_mean
from typing import NamedTuple

import msgspec

from app.base import numbers
from app.base.files import read_file
from app.base.paths import find_paths
from app.engine.explain.cost import times_of
from app.engine.explain.facts import Factor
from app.engine.process.messages import PassSeconds
from app.engine.strategy import NONE, StrategySpec

FILE = "typical.json"  # in the resources; tests/benchmarks/advice/typical.py makes it
GAIN = 1.03  # of the mean: less is none
LEAST = 0.98  # of the slowest prompt; passes are not all that takes time, and 0.97 is the limit


class TypicalRounds(msgspec.Struct, frozen=True):
    """The rounds of a setting on a prompt."""

    rounds: dict[int, int]  # by the tokens drafted
    steps: int = 0  # tokens that the draft model computed
    copying: float = 0.0  # seconds of copying


class TypicalPrompt(msgspec.Struct, frozen=True):
    """A prompt that was measured, with every setting."""

    target: str  # its file's name, with its folder if that alone says little
    draft: str  # "" without one
    prompt: str  # its kind
    tokens: int  # of the answer
    passes: dict[int, float]  # seconds, by their tokens, where it was measured
    draft_seconds: float  # of a pass of the draft model over one token
    settings: dict[str, TypicalRounds]

    def is_of(self, target: str, draft: str) -> bool:
        """Whether these files gave the answers; "" for no draft."""
        both = (self.target, target), (self.draft, draft)
        return all(f"/{path}".endswith(f"/{name}") and bool(path) == bool(name) for name, path in both)

    def factor(self, strategy: str, passes: PassSeconds | None) -> float:
        """The speed-up of a setting with these pass times, or with those of the machine that measured the
        prompt."""
        seconds, draft = (
            (passes.target, passes.draft) if passes is not None else (self.passes, self.draft_seconds)
        )
        known, done = times_of(seconds), self.settings[strategy]
        single = known.seconds(1) or 1.0
        taken = sum(rounds * (known.seconds(k + 1) or single) for k, rounds in done.rounds.items())
        return self.tokens * single / (taken + done.steps * draft + done.copying)


class Typical(msgspec.Struct, frozen=True):
    """The measurements, with place and time: "machine, date"."""

    tables: list[str]
    prompts: list[TypicalPrompt]


@dataclass(frozen=True, slots=True)
class KindOfWork:
    """A kind of work, and the kinds of prompts that resemble it."""

    name: str
    like: Sequence[str]
    about: str
    only: str = ""  # the one strategy, with any settings, that suits it

    @property
    def key(self) -> str:
        """Its name on the command line, such as "code-edits"."""
        return self.name.lower().replace(" ", "-")


_ALL = ("talk", "story", "list", "rewrite", "code", "json", "quote", "long")
PURPOSES = (
    KindOfWork("Chat", ("talk", "story", "list"), "Free talk repeats little."),
    KindOfWork("Code edits", ("rewrite", "code"), "An edit repeats most of the given text."),
    KindOfWork("Structured output", ("json",), "Keys, quotes and brackets recur in every record."),
    KindOfWork("Summarise and quote", ("quote", "long"), "Names and quotations are in the prompt."),
    KindOfWork(
        "Little memory",
        _ALL,
        "prompt-lookup needs no draft model and uses 0.3 kB of memory per token.",
        "prompt-lookup",
    ),
    KindOfWork("A bit of everything", _ALL, "One setting has to suit all kinds of prompts."),
)


class FirstStrategy(NamedTuple):
    """A first strategy, and why."""

    strategy: str
    reason: str
    expected: Factor | None = None  # over the prompts: the mean, the slowest and the fastest; None for none

    @property
    def spec(self) -> StrategySpec:
        return StrategySpec.parse(self.strategy)


@cache
def typical() -> Typical:
    """The measurements of every kind of prompt."""
    return msgspec.json.decode(read_file(find_paths().resources / FILE), type=Typical)


def first_strategy(
    kind: KindOfWork,
    target: str,
    draft: str = "",
    passes: PassSeconds | None = None,
    prompts: Sequence[TypicalPrompt] | None = None,
) -> FirstStrategy:
    """The fastest strategy on prompts of this kind. One that was clearly slower than none on a prompt is left
    out.

    `target` and `draft` are the pair's files, "" for no draft. If this pair was measured, only its own
    answers count. Without `passes`, each answer counts with the times of its own machine.
    """
    measured = typical()
    like = [each for each in (measured.prompts if prompts is None else prompts) if each.prompt in kind.like]
    like = [each for each in like if each.is_of(target, draft)] or like
    safe = {
        strategy: factor
        for strategy, factor in _factors(like, passes, has_draft=bool(draft))
        if factor.low >= LEAST and factor.value >= GAIN and strategy.startswith(kind.only)
    }
    best = max(safe, key=lambda strategy: safe[strategy].value, default=NONE)
    times = (
        "with this machine's pass times"
        if passes is not None
        else "with the pass times of the original machine"
    )
    like = [each for each in like if best == NONE or best in each.settings]
    said = f"from {numbers.count(len(like), 'measured answer')} ({'; '.join(measured.tables)}), {times}"
    if best == NONE:
        return FirstStrategy(NONE, f"{kind.about} No strategy is certain to pay: {said}.")
    value, low, high = factor = safe[best]
    single = f", {low:.2f}× to {high:.2f}× on single prompts" if len(like) > 1 else ""
    return FirstStrategy(best, f"{kind.about} {value:.2f}× is expected{single}: {said}.", factor)


def _factors(
    like: Sequence[TypicalPrompt], passes: PassSeconds | None, *, has_draft: bool
) -> Iterator[tuple[str, Factor]]:
    """Every setting, with its mean, lowest and highest factor."""
    for strategy in dict.fromkeys(strategy for each in like for strategy in each.settings):
        needs = StrategySpec.parse(strategy).needs_draft
        if not needs or (has_draft and (passes is None or passes.draft)):
            factors = [each.factor(strategy, passes) for each in like if strategy in each.settings]
            yield strategy, Factor(harmonic_mean(factors), min(factors), max(factors))
