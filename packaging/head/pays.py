"""Finds the number formats of the target, and the strategies, with which the head pays.

    .venv/bin/python packaging/head/pays.py TARGET HEAD FOLDER [--seconds 340] [--threads 2] [--turns 5]

TARGET is SmolLM2-135M-Instruct.Q4_1.gguf. Its other formats are made in FOLDER, before anything is timed. Run
it on a quiet machine. No drafts and the strategies answer the held-out prompts in turns, cold and greedy, in
a different order for each turn. Each format gets the same time. A prompt's speed-up is the median over its
turns, and a round that takes more than twice the usual time of its kind counts as twice: a stall of the
machine is no slow prompt. The goal, as median over prompts: 1.15 on F16 and 1.0 on the others, at worst 0.97.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from itertools import chain, zip_longest
from pathlib import Path

from app.engine import Engine, GenerationRequest, Message, ModelOptions
from app.engine.native.model import quantise
from app.engine.process.messages import PassSeconds, trace_of
from app.engine.record.trace import Trace

RECIPE = Path(__file__).resolve().parent
KINDS = ("F16", "Q8_0", "Q4_0", "Q4_1")
SETTINGS = tuple(
    f"draft-eagle3:n_max=3{more}" for more in ("", ":p_min=0.4", ":length=auto", ":p_min=0.4:length=auto")
)
TOKENS = 128


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


def usual(traces: list[Trace]) -> dict[int, float]:
    """The median seconds of a round by the tokens that it drafted."""
    seconds = defaultdict(list)
    for round in chain.from_iterable(trace.rounds for trace in traces):
        seconds[len(round.drafted)].append(round.seconds)
    return {drafted: statistics.median(each) for drafted, each in seconds.items()}


def taken(trace: Trace, usual: dict[int, float]) -> float:
    """The seconds of an answer's rounds, without the machine's stalls."""
    return sum(min(round.seconds, 2 * usual[len(round.drafted)]) for round in trace.rounds)


def measure(target: Path, head: Path, args: argparse.Namespace) -> None:
    """Measure a format for its share of the time, and print its lines."""
    strategies = ("none", *args.strategies)
    turns: list[list[list[Trace]]] = []  # of each prompt, the answers of each turn
    with Engine(
        *(ModelOptions(str(file), ctx_size=1024, threads=args.threads) for file in (target, head))
    ) as engine:
        for strategy in strategies:
            ask(engine, "Say hello.", strategy, 16)  # a warm-up
        passes = engine.force([]).seconds  # as the window times a pair, for length=auto
        end = time.monotonic() + args.seconds / len(args.kinds)
        for prompt in held_out():
            if time.monotonic() > end:
                break
            answers = []
            for turn in range(args.turns):
                order = [*strategies[turn % len(strategies) :], *strategies[: turn % len(strategies)]]
                found = {each: ask(engine, prompt, each, args.tokens, passes) for each in order}
                answers.append([found[each] for each in strategies])
            turns.append(answers)
    known = [usual([row[place] for rows in turns for row in rows]) for place in range(len(strategies))]
    plain = statistics.median(len(row[0].token_ids) / row[0].totals.seconds for rows in turns for row in rows)
    print(
        f"\n{target.name}: {len(turns)} prompts, {args.turns} turns of {args.tokens} tokens, {args.threads} "
        f"threads, {plain:.1f} tokens/s without drafts"
    )
    v = ", ".join(f"{seconds / passes.target[1]:.2f}" for _, seconds in sorted(passes.target.items())[:4])
    print(f"passes over 1 to 4 tokens: {v}")
    print(f"{'strategy':41} speed-up  worst  below 0.97  drafted  first accepted  same text")
    for place, strategy in enumerate(args.strategies, start=1):
        ratios = [
            statistics.median(taken(row[0], known[0]) / taken(row[place], known[place]) for row in rows)
            for rows in turns
        ]
        rounds = [round for rows in turns for row in rows for round in row[place].rounds]
        drafted = [round for round in rounds if round.drafted]
        first = sum(round.accepted > 0 for round in drafted) / max(1, len(drafted))
        same = sum(row[0].token_ids == row[place].token_ids for rows in turns for row in rows)
        print(
            f"{strategy:42}{statistics.median(ratios):8.3f} {min(ratios):6.3f} "
            f"{sum(ratio < 0.97 for ratio in ratios):6} of {len(turns):2} {len(drafted) / len(rounds):8.2f} "
            f"{first:15.2f} {same:5} of {len(turns) * args.turns}"
        )
        print("  " + " ".join(f"{ratio:.3f}" for ratio in ratios), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("folder", type=Path, help="where the other formats are made")
    parser.add_argument("--seconds", type=float, default=340, help="of all formats together")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5, help="of each prompt")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of each answer")
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--strategies", nargs="*", default=SETTINGS)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    files = []
    for kind in args.kinds:
        made = args.folder / f"SmolLM2-135M-Instruct.{kind}.gguf"
        if f".{kind}." not in args.target.name and not made.exists():
            quantise(args.target, kind, made)
        files.append(made if made.exists() else args.target)
    for file in files:
        measure(file, args.head, args)


if __name__ == "__main__":
    main()
