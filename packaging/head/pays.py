"""Finds the number formats of the target, and the draft lengths, with which the head pays.

    .venv/bin/python packaging/head/pays.py TARGET HEAD FOLDER [--seconds 340] [--threads 2]

TARGET is SmolLM2-135M-Instruct.Q4_1.gguf. Its other formats are made in FOLDER, before anything is timed. Run
it on a quiet machine. No drafts, drafts of 1 and 3 tokens, and length=auto with at most 1 and 3 answer the
held-out prompts in turns, cold and greedy, in a different order for each prompt. Each format gets the same
time. A speed-up is the median of the ratios within a prompt. The goal: 1.15 on F16 and 1.0 on the others, at
worst 0.97.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import chain, zip_longest
from pathlib import Path

from app.engine import Engine, GenerationRequest, Message, ModelOptions
from app.engine.native.model import quantise
from app.engine.process.messages import PassSeconds, trace_of
from app.engine.record.trace import Trace

RECIPE = Path(__file__).resolve().parent
KINDS = ("F16", "Q8_0", "Q4_0", "Q4_1")
SETTINGS = ("none", *(f"draft-eagle3:n_max={k}{auto}" for auto in ("", ":length=auto") for k in (1, 3)))
TOKENS = 64


def held_out() -> list[str]:
    """The prompts, one of each kind after the other."""
    kinds = json.loads((RECIPE / "held_out.json").read_text(encoding="utf-8")).values()
    return [prompt for prompt in chain.from_iterable(zip_longest(*kinds)) if prompt]


def ask(
    engine: Engine, prompt: str, strategy: str, tokens: int = TOKENS, passes: PassSeconds | None = None
) -> Trace:
    request = GenerationRequest(
        messages=(Message("user", prompt),), strategy=strategy, max_tokens=tokens, cold=True, ignore_eos=True
    )
    return trace_of(engine.generate(request, passes=passes))


def measure(target: Path, head: Path, threads: int, seconds: float) -> None:
    """Measure a format for this many seconds, and print its lines."""
    answers: list[list[Trace]] = []
    with Engine(
        *(ModelOptions(str(file), ctx_size=1024, threads=threads) for file in (target, head))
    ) as engine:
        for strategy in SETTINGS:
            ask(engine, "Say hello.", strategy, 16)  # a warm-up
        passes = engine.force([]).seconds  # as the window times a pair, for length=auto
        end = time.monotonic() + seconds
        for number, prompt in enumerate(held_out()):
            if time.monotonic() > end:
                break
            found: dict[str, Trace] = {}
            for turn in range(len(SETTINGS)):
                strategy = SETTINGS[(number + turn) % len(SETTINGS)]
                found[strategy] = ask(engine, prompt, strategy, passes=passes)
            answers.append([found[strategy] for strategy in SETTINGS])
    plain = statistics.median(len(row[0].token_ids) / row[0].totals.seconds for row in answers)
    print(f"\n{target.name}: {len(answers)} prompts, {threads} threads, {plain:.1f} tokens/s without drafts")
    v = ", ".join(f"{seconds / passes.target[1]:.2f}" for _, seconds in sorted(passes.target.items())[:4])
    print(f"passes over 1 to 4 tokens: {v}")
    print("strategy                          speed-up  worst  rounds drafted  first accepted  same text")
    for place, strategy in enumerate(SETTINGS[1:], start=1):
        ratios = [row[0].totals.seconds / row[place].totals.seconds for row in answers]
        rounds = [round for row in answers for round in row[place].rounds]
        drafted = [round for round in rounds if round.drafted]
        first = sum(round.accepted > 0 for round in drafted) / max(1, len(drafted))
        same = sum(row[0].token_ids == row[place].token_ids for row in answers)
        print(
            f"{strategy:34}{statistics.median(ratios):7.3f} {min(ratios):7.3f} "
            f"{len(drafted) / len(rounds):14.2f} {first:15.2f} {same:6} of {len(answers)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("folder", type=Path, help="where the other formats are made")
    parser.add_argument("--seconds", type=float, default=340, help="of all formats together")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    files = []
    for kind in args.kinds:
        made = args.folder / f"SmolLM2-135M-Instruct.{kind}.gguf"
        if f".{kind}." not in args.target.name and not made.exists():
            quantise(args.target, kind, made)
        files.append(made if made.exists() else args.target)
    for file in files:
        measure(file, args.head, args.threads, args.seconds / len(files))


if __name__ == "__main__":
    main()
