"""Every strategy on every category of prompt: its speed-up over no speculation, and its acceptance.

    python tests/benchmarks/strategies.py [--pair bundled|costly ...] [--repeats 5] [--tokens 192]
                                          [--prompts 12] [--only NAME ...]

A figure is the median, over the prompts of a category and the repeats, of tokens/s over those of strategy
`none` on the same prompt in the same repeat. Every run is cold and greedy, with one thread. Its seconds are
processor time, so that other work on the machine counts little, and include the draft's reading of the
prompt. All strategies take turns on a prompt, in a different order each time. "same" counts answers with the
text of `none`. A different text is a rounding tie of the baseline's two best logits, or an error (`make
verify` says which).

The costly pair is the bundled pair with layers added to the target that change nothing, so that the target
costs as much as a real one, relative to its draft.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import Engine, GenerationRequest
from app.engine.drafters.registry import KINDS
from tests.benchmarks.costly import costly_copy
from tests.benchmarks.measure import DEMO_PAIR, Answer, as_user, demo_entries, measure, one_thread

# Two of llama.cpp's defaults ask for more repetition than answers of this length have.
SPECS = {
    "ngram-simple": "ngram-simple:size_n=3:size_m=8",
    "ngram-map-k": "ngram-map-k:size_n=3:size_m=8",
    "ngram-map-k4v": "ngram-map-k4v:size_n=3:size_m=8",
    "ngram-mod": "ngram-mod:n_match=4:n_min=1:n_max=16",
    "draft-simple": "draft-simple:n_max=4",
}
REPEATED = {"bundled": 3, "costly": 1}  # short answers are measured more often
MIXED = ("ngram-mod:n_match=4:n_min=1:n_max=16+draft-simple:n_max=4", "draft-simple:n_max=8:length=auto")


@dataclass(slots=True)
class Row:
    """A strategy's results: factors by category, and sums over everything."""

    factors: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    drafted: int = 0
    accepted: int = 0
    same: int = 0
    answers: int = 0

    def add(self, category: str, answer: Answer, baseline: Answer) -> None:
        self.factors[category].append(_speed(answer) / _speed(baseline))
        self.drafted += answer.drafted
        self.accepted += answer.accepted
        self.same += answer.totals.text == baseline.totals.text
        self.answers += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pair", nargs="*", choices=REPEATED, default=[*REPEATED])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=192, help="most tokens of an answer")
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--only", nargs="*", help="specs to measure instead of all strategies")
    options = parser.parse_args()
    specs = options.only or [*(SPECS.get(name, name) for name in KINDS), *MIXED]
    entries = demo_entries(options.prompts)
    for pair in options.pair:
        target = DEMO_PAIR / "target.gguf"
        if pair == "costly":
            target = costly_copy(target)
        repeats = options.repeats * REPEATED[pair]
        with Engine(one_thread(target), one_thread(DEMO_PAIR / "draft.gguf")) as engine:
            rows = run(engine, specs, entries, options.tokens, repeats)
        show(rows, f"{pair} pair, one thread, greedy, cold, {repeats} repeats")


def run(
    engine: Engine, specs: list[str], entries: list[dict[str, str]], tokens: int, repeats: int
) -> dict[str, Row]:
    rows = {spec: Row() for spec in specs}
    order = ["none", *specs]
    for spec in order:
        measure(engine, request(entries[0]["prompt"], spec, tokens))  # a warm-up
    for repeat in range(repeats):
        for number, entry in enumerate(entries):
            answers: dict[str, Answer] = {}
            turn = (repeat + number) % len(order)
            for spec in order[turn:] + order[:turn]:
                answers[spec] = measure(engine, request(entry["prompt"], spec, tokens))
            for spec in specs:
                rows[spec].add(entry["category"], answers[spec], answers["none"])
    return rows


def request(prompt: str, strategy: str, tokens: int) -> GenerationRequest:
    return GenerationRequest(messages=as_user(prompt), strategy=strategy, max_tokens=tokens, cold=True)


def show(rows: dict[str, Row], title: str) -> None:
    """Print the table, as Markdown: it goes into the README."""
    categories = sorted({category for row in rows.values() for category in row.factors})
    print(f"\n{title}: median speed-up over none\n")
    print("| strategy | " + " | ".join(categories) + " | all | acceptance | same |")
    print("|---|" + "---|" * (len(categories) + 3))
    for spec, row in rows.items():
        every = [factor for factors in row.factors.values() for factor in factors]
        cells = [f"{statistics.median(row.factors[category]):.2f}" for category in categories]
        cells.append(f"**{statistics.median(every):.2f}**")
        cells.append(f"{row.accepted / row.drafted:.2f}" if row.drafted else "no draft")
        cells.append(f"{row.same}/{row.answers}")
        print(f"| `{spec}` | " + " | ".join(cells) + " |", flush=True)


def _speed(answer: Answer) -> float:
    return answer.tokens / answer.processor_seconds


if __name__ == "__main__":
    main()
