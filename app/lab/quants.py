"""Which quantisation drafts well: one model in several files, each without drafts and with a strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from app.engine.errors import SettingError
from app.engine.process.messages import Forced, ForcedText
from app.engine.strategy import NONE, StrategySpec
from app.lab.experiment import Experiment, Lane, Pair, make_experiment
from app.lab.runs.events import LabEvent
from app.lab.runs.runner import MakeHome, Runner

WITH_DRAFT, ALONE = "draft-simple:length=auto", "prompt-lookup:length=auto"
"""Strategies where none was chosen: they stop drafting where it does not pay."""


def quant_lanes(pair: Pair, files: Sequence[tuple[str, str]], strategy: str) -> tuple[Lane, ...]:
    """A lane for each (kind, path), on the pair with this file as its target. Raises SettingError for a
    strategy that does not draft."""
    if not StrategySpec.parse(strategy).parts:
        raise SettingError(f"{strategy} does not draft.", "Choose another strategy.")
    return tuple(
        Lane(strategy, f"{kind} {strategy}", Pair(replace(pair.target, path=path), pair.draft))
        for kind, path in files
    )


def quants_experiment(base: Experiment, files: Sequence[tuple[str, str]], strategy: str) -> Experiment:
    """`base`, which has no lanes, with two for each (kind, path): none and the strategy. Raises
    SettingError."""
    drafting = quant_lanes(base.pair, files, strategy)
    lanes = [
        lane
        for (kind, _path), drafts in zip(files, drafting, strict=True)
        for lane in (Lane(NONE, f"{kind} {NONE}", drafts.pair), drafts)
    ]
    own = msgspec.structs.replace(base, pair=drafting[0].pair or base.pair)
    return make_experiment(own.with_lanes(lanes), most_lanes=len(lanes))


class PassRunner(Runner):
    """A Runner that also times passes over several tokens, each time that it has loaded a pair: targets take
    turns, so these do too."""

    def __init__(self, experiment: Experiment, make_home: MakeHome) -> None:
        super().__init__(experiment, make_home)
        self.passes: dict[Pair, list[dict[int, float]]] = {}
        """By pair, then load: seconds by the number of tokens."""

    def _load(self, pair: Pair) -> Iterator[LabEvent]:
        yield from super()._load(pair)
        prompt = ForcedText(self.experiment.request(0, NONE), ())
        for event in self._engine.force((prompt,)):
            if isinstance(event, Forced):
                self.passes.setdefault(pair, []).append(event.seconds.target)
