"""A long suite whose engine is killed twice: no run may be missing at the end.

    python tests/benchmarks/long_suite.py [--tokens 96] [--repeats 1] [--prompts 40]

Three lanes (the baseline and two others) answer the prompts of the bundled suite with the bundled pair, in a
separate engine process, with a journal. That process is killed after one third of the runs, and again after
two thirds, each time during a run. The benchmark prints how many runs were done, how often the engine was
replaced, and whether answers equal the baseline's. The exit code is 1 if a run is missing or failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.base.paths import resource_folder
from app.engine.process.host import ProcessHome
from app.engine.types import FinishReason, ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, make_experiment
from app.lab.runs.events import EngineReplaced, RunDone, RunRound
from app.lab.runs.journal import Journal
from app.lab.runs.runner import Runner
from app.lab.suites import built_in

LANES = ("draft-simple:n_max=4", "prompt-lookup")
DEMO_PAIR = resource_folder() / "demo_pair"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=96, help="most tokens of an answer")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--prompts", type=int, default=40)
    options = parser.parse_args()
    suite = next(suite for suite in built_in(resource_folder()) if suite.name == "bundled")
    experiment = make_experiment(
        Experiment(
            pair=Pair(
                ModelOptions(str(DEMO_PAIR / "target.gguf")), ModelOptions(str(DEMO_PAIR / "draft.gguf"))
            ),
            lanes=tuple(map(Lane, LANES)),
            prompts=suite.prompts[: options.prompts],
            sampling=Sampling(seed=1),
            max_tokens=options.tokens,
            repeats=options.repeats,
            chat=suite.chat,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        return run(experiment, Path(folder) / "suite.jsonl")


def run(experiment: Experiment, file: Path) -> int:
    """Measure, kill, count; returns the exit code."""
    homes: list[ProcessHome] = []

    def make_home() -> ProcessHome:
        homes.append(ProcessHome())
        return homes[-1]

    total = len(experiment.jobs())
    kill_at = [total // 3, 2 * total // 3]
    runner = Runner(experiment, make_home, journal=file)
    done = replaced = 0
    began = time.monotonic()
    for event in runner.run():
        if isinstance(event, RunDone):
            done = event.done
            if done % 20 == 0:
                print(f"{done}/{total}", flush=True)
        elif isinstance(event, EngineReplaced):
            replaced += 1
            print(f"{done}/{total}  {event.message} A new one continues.", flush=True)
        elif isinstance(event, RunRound) and kill_at and done >= kill_at[0]:
            del kill_at[0]
            pid = homes[-1].pid
            assert pid is not None
            os.kill(pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    runner.close()
    records = Journal.read(file).records
    ends = Counter(record.finish_reason for record in records.values())
    same = sum(bool(record.identical_to_baseline) for record in runner.records.values())
    print(
        f"{len(experiment.lanes)} lanes x {len(experiment.prompts)} prompts x {experiment.repeats} repeats: "
        f"{len(records)} of {total} runs are there, the engine was replaced {replaced} times, "
        f"{same} answers are the baseline's, {time.monotonic() - began:.0f} s"
    )
    print("ended by: " + ", ".join(f"{reason} {count}" for reason, count in ends.most_common()))
    whole = set(records) == set(experiment.jobs()) and FinishReason.FAILED not in ends and replaced == 2
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
