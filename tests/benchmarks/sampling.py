"""The time from a row of logits in the model's memory to a drawn token, against llama.cpp's sampler chain.

    python tests/benchmarks/sampling.py [--repeats 30] [--rounds 5] [--folder DIR]

Both draw from rows of three vocabularies under seven settings, in turns, in one process; medians in
milliseconds. llama.cpp's chain is its default chain with the same settings; its array of candidates, like our
row, is written just before, which is not counted. Logits have a standard deviation of 4, so that some hundred
tokens have most of the probability.

Then whole rounds on a pair with 151,936 tokens and small random weights, whose passes are about as short as a
GPU's: the milliseconds of a round outside llama.cpp, with all recording, and those inside. Medians of answers
of 48 tokens, the settings in turns.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import llama_cpp as cpp
import numpy as np

from app.engine import Engine, GenerationRequest, Sampling
from app.engine.sampling.dry import Breakers, is_on
from app.engine.sampling.rows import RowStore
from app.engine.sampling.sampler import Sampler
from tests.benchmarks.measure import measure, one_thread
from tests.benchmarks.random_pair import SHORT, random_pair

SETTINGS = {
    "temperature": Sampling(temperature=0.8),
    "top_k 40": Sampling(temperature=0.8, top_k=40),
    "top_p .9": Sampling(temperature=0.8, top_p=0.9),
    "min_p .05": Sampling(temperature=0.8, min_p=0.05),
    "top_k 40, top_p .95, min_p .05": Sampling(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05),
    "those, repeat_penalty 1.1": Sampling(
        temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1.1
    ),
    "the first, DRY over 4,096 tokens": Sampling(temperature=0.8, dry_multiplier=0.8, dry_penalty_last_n=-1),
}
SIZES = (32_000, 151_936, 262_144)  # tokens: Llama 2, Qwen, Gemma
CONTEXT = np.arange(100, 164, dtype=np.int32)
LONG_CONTEXT = np.minimum(np.random.default_rng(3).zipf(1.3, 4096), 30_000).astype(np.int32)
LONG_CONTEXT[-1] = 3  # occurs some hundred times in it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30, help="of every row")
    parser.add_argument("--rounds", type=int, default=5, help="answers of every setting")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "draftscope-benchmarks",
        help="where the pair is written (130 MB) and kept",
    )  # fmt: skip
    options = parser.parse_args()
    rows(options.repeats)
    rounds(random_pair(options.folder, SHORT), options.rounds)


def rows(repeats: int) -> None:
    """Print the table of rows."""
    print(f"{'ms a row: ours / llama.cpp':34}" + "".join(f"{size:>18,}" for size in SIZES))
    for name, sampling in SETTINGS.items():
        cells = []
        for size in SIZES:
            row = (4 * np.random.default_rng(size).standard_normal(size)).astype(np.float32)
            kept = row.copy()
            ours, theirs = _ours(row, sampling), _Chain(row, sampling)
            times: tuple[list[float], list[float]] = ([], [])
            # The input of each was just written, as by a pass of the model.
            pair: list[tuple[Callable[[], object], Callable[[], object]]] = [
                (partial(np.copyto, row, kept), ours),
                (theirs.refill, theirs.draw),
            ]
            for repeat in range(-3, repeats):
                for which, (write, draw) in enumerate(pair):
                    write()
                    began = time.perf_counter()
                    draw()
                    if repeat >= 0:
                        times[which].append(time.perf_counter() - began)
            theirs.close()
            cells.append(" / ".join(f"{1e3 * statistics.median(each):.2f}" for each in times))
        print(f"{name:34}" + "".join(f"{cell:>18}" for cell in cells))


def rounds(pair: tuple[Path, Path], repeats: int) -> None:
    """Print the table of rounds."""
    filters = SETTINGS["top_k 40, top_p .95, min_p .05"]
    plain = SETTINGS["temperature"]
    settings = {
        "greedy, nothing drafted": ("none", Sampling()),
        "greedy, draft of 4": ("draft-simple:n_max=4", Sampling()),
        "temperature 0.8": ("draft-simple:n_max=4", plain),
        "temperature 0.8, filters": ("draft-simple:n_max=4", filters),
        "temperature 0.8, sample=1": ("draft-simple:n_max=4:sample=1", plain),
        "temperature 0.8, filters, sample=1": ("draft-simple:n_max=4:sample=1", filters),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in settings}
    with Engine(one_thread(pair[0]), one_thread(pair[1])) as engine:
        for repeat in range(-1, repeats):
            for name, (strategy, sampling) in settings.items():
                request = GenerationRequest(
                    prompt="The same text for both.",
                    strategy=strategy,
                    sampling=replace(sampling, seed=max(repeat, 0)),
                    max_tokens=48,
                    cold=True,
                )
                answer = measure(engine, request)
                count = len(answer.rounds) / 1e3
                outside_seconds = answer.loop_seconds - answer.native_seconds
                if repeat >= 0:
                    taken[name].append((outside_seconds / count, answer.native_seconds / count))
    print(f"\n{'ms a round, 151,936 tokens':38}{'outside llama.cpp':>20}{'inside':>12}")
    for name, values in taken.items():
        outside, inside = (statistics.median(each) for each in zip(*values, strict=True))
        print(f"{name:38}{outside:>20.2f}{inside:>12.2f}")


def _ours(row: np.ndarray, sampling: Sampling) -> Callable[[], object]:
    breakers = Breakers(np.zeros(len(row), np.bool_))
    sampler, store = Sampler(sampling, (), breakers), RowStore(len(row))
    made, adjusted = store.rows(2)
    context = _context(sampling)
    return lambda: sampler.distribution(sampler.adjust(row, context, adjusted), made).draw(7)


def _context(sampling: Sampling) -> np.ndarray:
    return LONG_CONTEXT if is_on(sampling) else CONTEXT


class _Chain:
    """llama.cpp's own samplers, in its default order."""

    def __init__(self, row: np.ndarray, sampling: Sampling) -> None:
        self._full = np.zeros(len(row), [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        self._full["id"], self._full["logit"] = np.arange(len(row)), row
        self._data = self._full.copy()
        self._candidates = cpp.llama_token_data_array()
        self._chain = cpp.llama_sampler_chain_init(cpp.llama_sampler_chain_default_params())
        made = [cpp.llama_sampler_init_temp(sampling.temperature), cpp.llama_sampler_init_dist(7)]
        if sampling.min_p > 0:
            made.insert(0, cpp.llama_sampler_init_min_p(sampling.min_p, 1))
        if sampling.top_p < 1:
            made.insert(0, cpp.llama_sampler_init_top_p(sampling.top_p, 1))
        if sampling.top_k > 0:
            made.insert(0, cpp.llama_sampler_init_top_k(sampling.top_k))
        if is_on(sampling):
            dry = sampling.dry_multiplier, sampling.dry_base, sampling.dry_allowed_length
            made.insert(0, cpp.llama_sampler_init_dry(None, *dry, len(LONG_CONTEXT), None, 0))
        if sampling.repeat_penalty != 1:
            made.insert(0, cpp.llama_sampler_init_penalties(len(row), 64, sampling.repeat_penalty, 0.0, 0.0))
        for sampler in made:
            cpp.llama_sampler_chain_add(self._chain, sampler)
        for token in _context(sampling).tolist():
            cpp.llama_sampler_accept(self._chain, token)

    def refill(self) -> None:
        self._data[:] = self._full
        self._candidates.data = ctypes.cast(self._data.ctypes.data, ctypes.POINTER(cpp.llama_token_data))
        self._candidates.size, self._candidates.selected, self._candidates.sorted = len(self._data), -1, False

    def draw(self) -> None:
        cpp.llama_sampler_apply(self._chain, ctypes.byref(self._candidates))

    def close(self) -> None:
        cpp.llama_sampler_free(self._chain)


if __name__ == "__main__":
    main()
