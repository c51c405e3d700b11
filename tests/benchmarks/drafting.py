"""The cost of drafting without a model: reading a prompt, and proposing and learning in every round.

    python tests/benchmarks/drafting.py [--strategy NAME ...] [--history 1000 10000 100000] [--repeats 3]

The text is Python's own standard library, in tokens of the bundled pair's vocabulary. An answer of 3,000
tokens follows the history; half of it continues the library, half of it repeats stretches of the history with
one token of 50 changed. Every strategy drafts with its default settings and sees the same text; a draft's
tokens are accepted as far as they equal the answer.

"begin" is `begin` and the first `propose`: some strategies read the prompt only then. A round, from the
second on, is `propose` and `observe`. Goal: 50 µs a round plus 10 µs a drafted token; "of the goal" is a
round's time over its own goal. Each round is the median of the repeats, in which the strategies take turns;
then median and 99th percentile over the rounds. Memory is what Python allocated for the largest history.

"suffix, warm" remembers 100,000 tokens of earlier answers as well. The last line is llama-cpp-python's
LlamaPromptLookupDecoding with prompt-lookup's settings: it scans the text, and has nothing to read or to
learn.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import sysconfig
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding
from typing_extensions import override

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine.drafters.base import Drafter, Proposal, Resources, RunContext
from app.engine.drafters.prompt_lookup import PromptLookupParams
from app.engine.drafters.registry import KINDS
from app.engine.native import Model, Vocabulary
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import Sampling
from tests.benchmarks.measure import DEMO_PAIR, one_thread

ANSWER = 3000  # tokens
ROOM = 512  # a draft's length is left to the strategy's own settings
ROUND_GOAL, TOKEN_GOAL = 50, 10  # µs
EARLIER = 100_000  # tokens of earlier answers, 1,000 each
PEER = "llama-cpp-python"


class Peer(Drafter):
    """llama-cpp-python's own prompt lookup."""

    def __init__(self) -> None:
        same = PromptLookupParams()
        self._lookup = LlamaPromptLookupDecoding(same.max_ngram_size, same.num_pred_tokens)

    @override
    def propose(self, context: np.ndarray, k: int) -> Proposal:
        return Proposal(ids=self._lookup(context).tolist())


@dataclass(frozen=True, slots=True)
class Run:
    """One answer: seconds until the first draft, and seconds and drafted tokens of every other round."""

    begin: float
    rounds: Sequence[float]
    drafted: Sequence[int]
    accepted: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    draftless = [kind.name for kind in KINDS.values() if not kind.needs_draft]
    parser.add_argument("--strategy", nargs="+", choices=draftless, default=draftless)
    parser.add_argument("--history", type=int, nargs="+", default=[1000, 10_000, 100_000], help="tokens")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    model = Model(one_thread(DEMO_PAIR / "target.gguf"))
    vocabulary = model.vocabulary
    makers = {name: _maker(name, vocabulary) for name in options.strategy}
    largest = max(options.history)
    library = _library(vocabulary, largest + ANSWER + EARLIER)
    if "suffix" in makers:
        makers["suffix, warm"] = partial(_warmed, makers["suffix"], library[-EARLIER:])
    makers[PEER] = Peer
    runs: dict[tuple[int, str], list[Run]] = {}
    for history in options.history:
        text = _text(library, history)
        for _repeat in range(options.repeats):
            for name, make in makers.items():
                runs.setdefault((history, name), []).append(answer(make(), text, history))
    memory = {name: _megabytes(make, library[:largest]) for name, make in makers.items()}
    report(runs, memory, largest)
    model.close()


def _maker(name: str, vocabulary: Vocabulary) -> Callable[[], Drafter]:
    kind = KINDS[name]
    return lambda: kind.make(kind.params(), Resources(vocabulary))


def _warmed(make: Callable[[], Drafter], earlier: np.ndarray) -> Drafter:
    """A drafter that has given answers before."""
    drafter = make()
    for text in np.split(earlier, range(1000, len(earlier), 1000)):
        drafter.begin(text[:1], _around(1))
        drafter.observe(text, Proposal(), 0)
        drafter.finish(text)
    return drafter


def _library(vocabulary: Vocabulary, count: int) -> np.ndarray:
    """The first `count` tokens of the standard library's modules, in order of their names."""
    found: list[np.ndarray] = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        found.append(vocabulary.tokenize(path.read_text(), special=False, parse_special=False))
        if sum(map(len, found)) >= count:
            break
    return np.concatenate(found)[:count]


def _text(library: np.ndarray, history: int) -> np.ndarray:
    """The history, and the answer after it."""
    chance = np.random.default_rng(0)
    fresh = library[history : history + ANSWER]
    parts = [library[:history]]
    for at in range(0, ANSWER, 200):
        parts.append(fresh[at : at + 100])
        start = int(chance.integers(0, history - 100))
        copied = library[start : start + 100].copy()
        copied[chance.random(100) < 0.02] = chance.choice(library)
        parts.append(copied)
    return np.concatenate(parts)


def answer(drafter: Drafter, text: np.ndarray, history: int) -> Run:
    """Draft along a text whose first `history` tokens are the prompt."""
    clock = time.perf_counter
    gc.collect()  # garbage of the previous drafter is not this one's cost
    began = clock()
    drafter.begin(text[:history], _around(history))
    drafter.propose(text[:history], ROOM)
    begin = clock() - began
    seconds, drafted = [], []
    accepted = 0
    at = history + 1
    drafter.observe(text[:at], Proposal(), 0)
    while at < len(text):
        context = text[:at]
        began = clock()
        proposal = drafter.propose(context, ROOM)
        proposed = clock()
        taken = 0
        for token in proposal.ids[: len(text) - at - 1]:
            if token != text[at + taken]:
                break
            taken += 1
        at += taken + 1
        context = text[:at]
        learning = clock()
        drafter.observe(context, proposal, taken)
        seconds.append(proposed - began + clock() - learning)
        drafted.append(len(proposal.ids))
        accepted += taken
    drafter.finish(text)
    return Run(begin, seconds, drafted, accepted)


def _around(prompt_length: int) -> RunContext:
    return RunContext(Sampler(Sampling()), Draws(0), prompt_length, frozenset())


def _megabytes(make: Callable[[], Drafter], text: np.ndarray) -> float:
    """The memory that a drafter holds after reading `text`."""
    gc.collect()
    tracemalloc.start()
    drafter = make()
    drafter.begin(text, _around(len(text)))
    drafter.propose(text, ROOM)
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / 1e6


def report(runs: dict[tuple[int, str], list[Run]], memory: dict[str, float], largest: int) -> None:
    columns = (
        "begin, ms", "drafted", "accepted",
        "µs a round", "p99", "µs a token", "p99", "of the goal", "p99", "MB",
    )  # fmt: skip
    print(f"{'history':>8}  {'strategy':18}" + "".join(f"{column:>12}" for column in columns))
    for (history, name), repeated in runs.items():
        rounds = [
            statistics.median(same) * 1e6 for same in zip(*(run.rounds for run in repeated), strict=True)
        ]
        drafted = repeated[0].drafted
        a_token = [time / count for time, count in zip(rounds, drafted, strict=True) if count]
        of_goal = [
            time / (ROUND_GOAL + TOKEN_GOAL * count) for time, count in zip(rounds, drafted, strict=True)
        ]
        cells = (
            f"{statistics.median(run.begin for run in repeated) * 1e3:.0f}" if name != PEER else "-",
            f"{sum(drafted)}",
            f"{repeated[0].accepted}",
            *(f"{value:.1f}" for value in _median_and_p99(rounds)),
            *(f"{value:.1f}" for value in _median_and_p99(a_token)),
            *(f"{value:.2f}" for value in _median_and_p99(of_goal)),
            f"{memory[name]:.0f}" if history == largest else "",
        )
        print(f"{history:>8}  {name:18}" + "".join(f"{cell:>12}" for cell in cells))


def _median_and_p99(values: Sequence[float]) -> tuple[float, float]:
    return (float(np.median(values)), float(np.percentile(values, 99))) if values else (0.0, 0.0)


if __name__ == "__main__":
    main()
