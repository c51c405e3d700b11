"""The gain of length=auto and length=ewma over the baseline, and over the best fixed length.

    python tests/benchmarks/length.py [--repeats 5] [--tokens 256] [--prompts 5] [--case NAME ...]

Every answer starts cold, one thread, greedy, and ignores the end of generation. Its time includes the draft's
reading of the prompt, and is processor time, so that other work on the machine counts little. The settings
take turns on a prompt, in a different order each time, and a figure is the median of the ratios within a
repeat. "Lost" is the extra time of an answer over its baseline (goal of auto: at most 3 % on every prompt);
"of best" is the speed over all prompts relative to the fixed length that was best on them in hindsight, none
included (goal: at least 97 %).
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
from tests.benchmarks.costly import costly_copy, noisy_copy
from tests.benchmarks.measure import DEMO_PAIR, as_user, demo_entries, measure, one_thread

FIXED = (1, 2, 3, 4, 6, 8)
BASELINE = "none"
TARGET, DRAFT = DEMO_PAIR / "target.gguf", DEMO_PAIR / "draft.gguf"


@dataclass(frozen=True, slots=True)
class Case:
    title: str
    target: Path
    draft: Path
    strategy: str = "draft-simple:n_max="  # up to the longest draft
    turns: int = 1  # in a repeat: answers of a fraction of a second are measured more often

    def settings(self) -> dict[str, str]:
        """The settings to measure: label -> strategy."""
        longest = f"{self.strategy}{FIXED[-1]}"
        return {
            BASELINE: "none",
            **{f"k={k}": f"{self.strategy}{k}" for k in FIXED},
            "ewma": f"{longest}:length=ewma",
            "auto": f"{longest}:length=auto",
        }


def cases() -> dict[str, Case]:
    costly, noisy = costly_copy(TARGET), noisy_copy(TARGET)
    lookup = "prompt-lookup:num_pred_tokens="
    return {
        "costly": Case("a costly target, a draft near it", costly, noisy),
        "bundled": Case("the bundled pair", TARGET, DRAFT, turns=3),
        "near": Case("the bundled target, a draft half its size", TARGET, noisy, turns=3),
        "lookup": Case("a costly target, drafts without a model", costly, noisy, lookup),
    }


@dataclass(slots=True)
class Measured:
    """Seconds of every repeat by (setting, prompt), and counts of the drafts."""

    seconds: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    drafted: dict[int, float] = field(default_factory=dict)  # by auto, a round
    parted: int = 0  # answers that are not the baseline's

    def total(self, label: str, repeat: int) -> float:
        return sum(times[repeat] for (key, _), times in self.seconds.items() if key == label)

    def ratio(self, over: str, under: str, prompt: int) -> float:
        """The median ratio of two settings' times on a prompt."""
        pairs = zip(self.seconds[over, prompt], self.seconds[under, prompt], strict=True)
        return statistics.median(a / b for a, b in pairs)

    def total_ratio(self, over: str, under: str) -> float:
        """The median ratio of two settings' times over all prompts."""
        repeats = range(len(self.seconds[over, 0]))
        return statistics.median(self.total(over, repeat) / self.total(under, repeat) for repeat in repeats)


def main() -> None:
    known = cases()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256, help="tokens an answer")
    parser.add_argument("--prompts", type=int, default=5, help="of the bundled ones")
    parser.add_argument("--case", nargs="*", choices=known, default=["costly", "bundled", "near"])
    options = parser.parse_args()
    asked = demo_entries(options.prompts)
    for name in options.case:
        case = known[name]
        repeats = options.repeats * case.turns
        measured = run(case, [entry["prompt"] for entry in asked], options.tokens, repeats)
        print(f"\n{case.title}: {case.settings()['auto']}; {options.tokens} tokens, {repeats} repeats\n")
        show(measured, [entry["category"] for entry in asked], [*case.settings()])


def run(case: Case, prompts: list[str], tokens: int, repeats: int) -> Measured:
    measured, settings = Measured(), case.settings()
    labels = [*settings]
    with Engine(one_thread(case.target), one_thread(case.draft)) as engine:
        measure(engine, _request(prompts[0], settings["auto"], tokens))  # a warm-up
        for repeat in range(repeats):
            for number, prompt in enumerate(prompts):
                texts = {}
                turn = (2 * repeat + number) % len(labels)
                for label in labels[turn:] + labels[:turn]:
                    answer = measure(engine, _request(prompt, settings[label], tokens))
                    measured.seconds[label, number].append(answer.processor_seconds)
                    texts[label] = answer.totals.text
                    if label == "auto":
                        measured.drafted[number] = answer.drafted / len(answer.rounds)
                measured.parted += sum(text != texts[BASELINE] for text in texts.values())
    return measured


def show(measured: Measured, categories: list[str], labels: list[str]) -> None:
    """Print the table."""
    shown = [label for label in labels if label != BASELINE]
    heads = "".join(f"{label:>7}" for label in shown)
    print(f"{'speed-up':12}{heads}   lost by auto, %   drafted a round")
    lost = []
    for number, category in enumerate(categories):
        row = "".join(f"{measured.ratio(BASELINE, label, number):7.2f}" for label in shown)
        lost.append(100 * (measured.ratio("auto", BASELINE, number) - 1))
        print(f"{category:12}{row}{lost[-1]:18.1f}{measured.drafted[number]:18.1f}")
    speeds = {label: measured.total_ratio(BASELINE, label) for label in shown}
    print(f"{'all':12}" + "".join(f"{speeds[label]:7.2f}" for label in shown))
    fixed = {BASELINE: 1.0, **{label: speeds[label] for label in shown if label not in ("ewma", "auto")}}
    best = max(fixed, key=fixed.__getitem__)
    auto, ewma = (100 * measured.total_ratio(best, label) for label in ("auto", "ewma"))
    print(
        f"best fixed: {best}; of best: auto {auto:.1f} %, ewma {ewma:.1f} %; "
        f"most lost by auto: {max(0.0, *lost):.1f} %; "
        f"answers that part from the baseline's: {measured.parted}",
        flush=True,
    )


def _request(prompt: str, strategy: str, tokens: int) -> GenerationRequest:
    return GenerationRequest(
        messages=as_user(prompt), strategy=strategy, max_tokens=tokens, ignore_eos=True, cold=True
    )


if __name__ == "__main__":
    main()
