"""What length=auto and length=ewma are worth: against the baseline, and against the best fixed length.

    python tests/benchmarks/length.py [--repeats 5] [--tokens 256] [--prompts 7] [--case NAME]

Every answer starts cold, and its time holds the draft's reading of the prompt; the settings take turns within
every repeat, and what is compared are medians over repeats. "Lost" is what an answer took more than its
baseline (goal of auto: at most 3 % on every prompt), "of best" the speed over all prompts relative to the
fixed length that was best on them in hindsight, none included (goal: at least 97 %).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import Engine, GenerationRequest
from tests.benchmarks.costly import costly_pair
from tests.benchmarks.measure import DEMO_PAIR, Answer, as_user, measure, one_thread

FIXED = (1, 2, 3, 4, 6, 8, 12)
TARGET, DRAFT = DEMO_PAIR / "target.gguf", DEMO_PAIR / "draft.gguf"
BASELINE = "none"


@dataclass(frozen=True, slots=True)
class Case:
    title: str
    pair: tuple[Path, Path]
    strategy: str  # up to the value of its length setting

    def settings(self) -> dict[str, str]:
        """What is measured: label -> strategy."""
        longest = f"{self.strategy}{FIXED[-1]}"
        return {
            BASELINE: "none",
            **{f"k={k}": f"{self.strategy}{k}" for k in FIXED},
            "ewma": f"{longest}:length=ewma",
            "auto": f"{longest}:length=auto",
        }


def cases(folder: Path) -> dict[str, Case]:
    costly, noisy = costly_pair(TARGET, folder)
    model, lookup = "draft-simple:n_max=", "prompt-lookup:num_pred_tokens="
    return {
        "costly": Case("a costly target, a draft near it", (costly, noisy), model),
        "bundled": Case("the bundled pair", (TARGET, DRAFT), model),
        "itself": Case("the bundled target as its own draft", (TARGET, TARGET), model),
        "lookup": Case("a costly target, drafts without a model", (costly, noisy), lookup),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256, help="tokens an answer, end of generation ignored")
    parser.add_argument(
        "--prompts", type=int, default=7, help="of the bundled ones, one of each category first"
    )
    parser.add_argument("--case", help="only this one: costly, bundled, itself, lookup")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "draftscope-benchmarks",
        help="where the costly pair is written (0.13 GB) and kept",
    )  # fmt: skip
    options = parser.parse_args()
    for name, case in cases(options.folder).items():
        if options.case in (None, name):
            report(case, prompts(options.prompts), options.tokens, options.repeats)


def prompts(count: int) -> list[tuple[str, str]]:
    """(category, prompt) of the bundled prompts: the first of every category, then the others."""
    entries = json.loads((DEMO_PAIR / "pair.json").read_text())["prompts"]
    firsts, others, seen = [], [], set()
    for entry in entries:
        (others if entry["category"] in seen else firsts).append((entry["category"], entry["prompt"]))
        seen.add(entry["category"])
    return (firsts + others)[:count]


def report(case: Case, asked: list[tuple[str, str]], tokens: int, repeats: int) -> None:
    """Measure all settings on all prompts and print the table."""
    settings = case.settings()
    seconds: dict[tuple[str, int], list[float]] = {}
    lengths: dict[tuple[str, int], float] = {}
    left = 0
    with Engine(*map(one_thread, case.pair)) as engine:
        for repeat in range(-1, repeats):  # the first warms the machine up
            for number, (_category, prompt) in enumerate(asked):
                texts = {}
                for label, strategy in settings.items():
                    answer = measure(engine, _request(prompt, strategy, tokens if repeat >= 0 else 16))
                    if repeat < 0:
                        continue
                    seconds.setdefault((label, number), []).append(_taken(answer))
                    lengths[label, number] = answer.drafted / len(answer.rounds)
                    texts[label] = answer.totals.text
                left += sum(text != texts[BASELINE] for text in texts.values())
    taken = {key: statistics.median(times) for key, times in seconds.items()}

    print(f"\n{case.title}: {case.settings()['auto']}; {tokens} tokens, median of {repeats}\n")
    shown = [*settings][1:]
    print(
        f"{'speed-up':14}"
        + "".join(f"{label:>8}" for label in shown)
        + "   lost by auto, %   drafted a round"
    )
    for number, (category, _prompt) in enumerate(asked):
        base = taken[BASELINE, number]
        row = "".join(f"{base / taken[label, number]:8.2f}" for label in shown)
        lost = max(0.0, 100 * (taken["auto", number] / base - 1))
        print(f"{category:14}{row}{lost:18.1f}{lengths['auto', number]:18.1f}")
    sums = {label: sum(taken[label, number] for number in range(len(asked))) for label in settings}
    print(f"{'all':14}" + "".join(f"{sums[BASELINE] / sums[label]:8.2f}" for label in shown))
    best = min((label for label in sums if label not in ("ewma", "auto")), key=sums.__getitem__)
    worst = max(taken["auto", number] / taken[BASELINE, number] - 1 for number in range(len(asked)))
    print(
        f"best fixed: {best}; of best: auto {100 * sums[best] / sums['auto']:.1f} %, "
        f"ewma {100 * sums[best] / sums['ewma']:.1f} %; most lost by auto {100 * worst:.1f} %; "
        f"answers that left the baseline's text at a near-tie: {left}",
        flush=True,
    )


def _taken(answer: Answer) -> float:
    """Seconds from the end of the target's reading of the prompt to the end of the answer."""
    return answer.totals.draft_prompt_seconds + answer.totals.seconds


def _request(prompt: str, strategy: str, tokens: int) -> GenerationRequest:
    return GenerationRequest(
        messages=as_user(prompt), strategy=strategy, max_tokens=tokens, ignore_eos=True, cold=True
    )


if __name__ == "__main__":
    main()
