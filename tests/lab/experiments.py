"""Small experiments over tiny model files, for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.engine.process.host import ThreadHome
from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, Prompt, make_experiment
from app.lab.runs.events import Control, LabEvent
from app.lab.runs.runner import Runner

DRAFT = "draft-simple:n_max=4"
LOOKUP = "prompt-lookup:num_pred_tokens=4"


def pair_of(files: tuple[Path, Path]) -> Pair:
    target, draft = files
    return Pair(ModelOptions(str(target), threads=1), ModelOptions(str(draft), threads=1))


def small(files: tuple[Path, Path], *strategies: str, **settings: Any) -> Experiment:
    """One prompt, one repeat, a dozen tokens; `settings` are fields of Experiment."""
    defaults: dict[str, Any] = {
        "prompts": (Prompt("abcabcabd abc"),),
        "sampling": Sampling(seed=7),
        "max_tokens": 12,
        "repeats": 1,
        "chat": False,
        "ignore_eos": True,
    }
    fields = defaults | {"lanes": tuple(map(Lane, strategies or (DRAFT,)))} | settings
    return make_experiment(Experiment(pair_of(files), **fields), most_lanes=64)


def finished(
    experiment: Experiment,
    make_home: Callable[[], Any] = ThreadHome,
    journal: Path | None = None,
    control: Control | None = None,
) -> tuple[Runner, list[LabEvent]]:
    """Run it to its end."""
    runner = Runner(experiment, make_home, journal=journal, control=control)
    return runner, list(runner.run())
