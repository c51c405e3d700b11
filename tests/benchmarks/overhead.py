"""The cost of the loop around llama.cpp: engine overhead with recording on, as METRICS.md defines it.

    python tests/benchmarks/overhead.py [--repeats 5] [--tokens 128] [--pair bundled|large|both]

Overhead is 1 - (time in native decode calls) / wall time of generation: "loop" is the wall time inside the
rounds, with all recording; "and trace file" is the whole wall time, with each round written to a file at
once. Medians over repeats, with the range. One thread; the settings take turns within every repeat.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import Engine, GenerationRequest, Sampling
from tests.benchmarks.measure import DEMO_PAIR, Answer, as_user, demo_prompts, measure, one_thread, spread
from tests.benchmarks.random_pair import random_pair

SETTINGS = {
    "greedy": ("draft-simple:n_max=4", 0.0),
    "temperature 0.8": ("draft-simple:n_max=4", 0.8),
    "temperature 0.8, sample=1": ("draft-simple:n_max=4:sample=1", 0.8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128, help="tokens an answer, on the large pair half")
    parser.add_argument("--pair", choices=("bundled", "large", "both"), default="both")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "draftscope-benchmarks",
        help="where the large pair is written (0.65 GB) and kept",
    )  # fmt: skip
    options = parser.parse_args()
    if options.pair != "large":
        pair = DEMO_PAIR / "target.gguf", DEMO_PAIR / "draft.gguf"
        requests = [GenerationRequest(messages=as_user(prompt)) for prompt in demo_prompts(5)]
        report("bundled pair, goal 6 %", pair, requests, options.tokens, options.repeats)
    if options.pair != "bundled":
        requests = [GenerationRequest(prompt="The same text for both.")]
        pair = random_pair(options.folder)
        report(
            "151,936 tokens in the vocabulary, 0.58B parameters, goal 2 %",
            pair, requests, options.tokens // 2, options.repeats,
        )  # fmt: skip


def report(
    title: str, pair: tuple[Path, Path], requests: list[GenerationRequest], tokens: int, repeats: int
) -> None:
    """Measure all settings on a pair and print its table."""
    target, draft = map(one_thread, pair)
    with Engine(target, draft) as engine, tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        runs: dict[str, list[list[Answer]]] = defaultdict(list)
        for repeat in range(-1, repeats):  # the first is a warm-up
            for name, (strategy, temperature) in SETTINGS.items():
                answers = [
                    measure(engine, _with(request, strategy, temperature, tokens, max(repeat, 0)), trace)
                    for request in requests
                ]
                if repeat >= 0:
                    runs[name].append(answers)
    print(f"\n{title}\n")
    columns = (
        "tokens/s",
        "acceptance",
        "native, µs/round",
        "other, µs/round",
        "loop, %",
        "and trace file, %",
    )
    print(f"{'overhead':28}" + "".join(f"{column:>22}" for column in columns))
    for name, repeated in runs.items():
        sums = [_Sum(answers) for answers in repeated]
        cells = (
            spread([total.tokens / total.wall for total in sums], "{:.0f}"),
            spread([total.accepted / total.drafted for total in sums], "{:.2f}"),
            spread([total.native / total.rounds * 1e6 for total in sums], "{:.0f}"),
            spread([(total.loop - total.native) / total.rounds * 1e6 for total in sums], "{:.0f}"),
            spread([100 * (1 - total.native / total.loop) for total in sums], "{:.1f}"),
            spread([100 * (1 - total.native / total.wall) for total in sums], "{:.1f}"),
        )
        print(f"{name:28}" + "".join(f"{cell:>22}" for cell in cells))


class _Sum:
    """One repeat: all prompts pooled."""

    def __init__(self, answers: list[Answer]) -> None:
        self.tokens = sum(answer.tokens for answer in answers)
        self.rounds = sum(len(answer.rounds) for answer in answers)
        self.accepted = sum(answer.accepted for answer in answers)
        self.drafted = sum(answer.drafted for answer in answers)
        self.native = sum(answer.native_seconds for answer in answers)
        self.loop = sum(answer.loop_seconds for answer in answers)
        self.wall = sum(answer.totals.seconds for answer in answers)


def _with(
    request: GenerationRequest, strategy: str, temperature: float, tokens: int, seed: int
) -> GenerationRequest:
    return GenerationRequest(
        prompt=request.prompt,
        messages=request.messages,
        strategy=strategy,
        sampling=Sampling(temperature=temperature, seed=seed),
        max_tokens=tokens,
        cold=True,
    )


if __name__ == "__main__":
    main()
