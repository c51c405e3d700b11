"""Judge a pair on the frozen prompts, and measure on held-out ones: the model card's table.

Runs in the app's environment, with the app's own engine, from the repository's root:

    cd packaging/demo_pair
    python -m judging.evaluate --pair ../../resources/demo_pair --work WORK [--wrong] [--table FILE]

WORK is where library.py and corpus.py wrote the held-out texts; without it, only the 100 frozen prompts are
used.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from app.engine import Engine, GenerationRequest, Message

from judging import judge, unsure
from judging.answering import answered, loaded

MOST_TOKENS = 400
SIMPLE = "draft-simple:n_max=4"
AUTO = "draft-simple:n_max=8:length=auto"
COPYING = ("prompt-lookup:num_pred_tokens=8", "ngram-map-k4v:size_n=2:size_m=12", "suffix")
COPIES = ("rename", "rewrite", "quote")
"""Kinds whose answers repeat much of the question."""


def request(case: judge.Case, strategy: str) -> GenerationRequest:
    """For the greedy answer from a cold state."""
    messages = tuple(Message(role, content) for role, content in case.messages)
    return GenerationRequest(messages=messages, strategy=strategy, max_tokens=MOST_TOKENS, cold=True)


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(1, whole):.0%})"


def right_answers(engine: Engine, cases: Sequence[judge.Case], wrong: bool) -> list[tuple[str, str]]:
    """Rows of the table: how many answers are right, over all and by kind."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for case in cases:
        answer = answered(engine, request(case, "none")).totals.text
        fault = judge.fault(answer, case.expect)
        asked[case.kind] += 1
        right[case.kind] += not fault
        if fault and wrong:
            print(f"--- {case.kind}: {fault}\n{case.messages[-1][1]}\n>>>\n{answer}\n", flush=True)
    kinds = ", ".join(f"{kind} {right[kind]}/{count}" for kind, count in asked.items())
    return [("right answers (at least 85 %)", f"{share(right.total(), asked.total())}: {kinds}")]


def acceptance(pair: Path, draft: str, cases: Sequence[judge.Case]) -> list[tuple[str, str]]:
    """Row of the table: how much of a draft's proposals is accepted, and every fate of them."""
    fates: Counter[str] = Counter()
    with loaded(pair, draft) as engine:
        for case in cases:
            for round in answered(engine, request(case, SIMPLE)).rounds:
                judged = {"accepted": round.accepted, "rejected": round.rejected, "ignored": round.ignored}
                fates.update(judged)
    label = f"acceptance of `{SIMPLE}`, {draft} (0.6 to 0.95)"
    told = ", ".join(f"{count} {fate}" for fate, count in fates.items())
    return [(label, f"{fates['accepted'] / max(1, fates.total()):.2f}: {told}")]


def speed_ups(
    engine: Engine, asked: Callable[[str], GenerationRequest], strategies: Iterable[str], repeats: int
) -> dict[str, float]:
    """Median tokens/s of each strategy over those of `none`, all taking turns; for `none` its own."""
    speeds: dict[str, list[float]] = {}
    order = ["none", *strategies]
    for repeat in range(repeats):
        turn = repeat % len(order)
        for strategy in order[turn:] + order[:turn]:
            speeds.setdefault(strategy, []).append(answered(engine, asked(strategy)).speed)
    medians = {strategy: statistics.median(found) for strategy, found in speeds.items()}
    return {key: found / medians["none"] for key, found in medians.items()} | {"none": medians["none"]}


def speeds(
    pair: Path, threads: int, cases: Sequence[judge.Case], prompts: Sequence[unsure.Prompt], repeats: int
) -> tuple[float, list[tuple[str, str]]]:
    """The baseline's tokens/s and rows of the table: medians over the prompts, greedy, cold.

    Strategies with the draft are measured on the held-out prompts as well, those that copy where there is
    something to copy.
    """
    found: list[tuple[str, dict[str, float]]] = []
    with loaded(pair, "draft.gguf", threads) as engine:
        answered(engine, request(cases[0], SIMPLE))  # wakes the processor
        for case in cases:
            strategies = (SIMPLE, AUTO, *(COPYING if case.kind in COPIES else ()))
            found.append((case.kind, speed_ups(engine, partial(request, case), strategies, repeats)))
        for prompt in prompts:
            asked = partial(prompt.asked, temperature=0.0)
            found.append((prompt.kind, speed_ups(engine, asked, (SIMPLE, AUTO), repeats)))
    baseline = statistics.median(speeds["none"] for _, speeds in found)

    def median(strategy: str, kinds: Iterable[str]) -> str:
        return f"{statistics.median(speeds[strategy] for kind, speeds in found if kind in kinds):.2f}"

    every = {kind for kind, _ in found}
    by_kind = ", ".join(f"{kind} {median(SIMPLE, [kind])}" for kind in dict.fromkeys(p.kind for p in prompts))
    where = f"{threads} thread{'s' * (threads > 1)}"
    rows = [(f"baseline, {where}", f"{baseline:.0f} tokens/s")]
    simple = median(SIMPLE, every) + (f": {by_kind}" if by_kind else "")
    rows.append((f"speed-up of `{SIMPLE}`, {where} (at least 1.3)", simple))
    rows += [
        (
            f"speed-up of `{copying}` on {', '.join(COPIES)}, {where} (one at least 1.5)",
            f"{median(copying, COPIES)}: {', '.join(f'{kind} {median(copying, [kind])}' for kind in COPIES)}",
        )
        for copying in COPYING
    ]
    rows.append((f"speed-up of `{AUTO}`, {where} (at least 1.2)", median(AUTO, every)))
    return baseline, rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pair", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="folder of the held-out texts")
    parser.add_argument("--wrong", action="store_true", help="print the answers that are wrong")
    parser.add_argument("--no-speeds", action="store_true", help="no speeds and no acceptance by draft")
    parser.add_argument("--every", type=int, default=2, help="measure speed on every so manieth prompt")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", type=Path, help="write the table here too")
    options = parser.parse_args()
    cases = judge.load()
    with loaded(options.pair, "draft.gguf") as engine:
        rows = right_answers(engine, cases, options.wrong)
    if options.work:
        rows += unsure.measured(options.pair, options.work)
    if not options.no_speeds:
        prompts = unsure.load(options.work) if options.work else []
        for path in sorted(options.pair.glob("*draft.gguf")):
            rows += acceptance(options.pair, path.name, cases)
        default = max(1, (os.cpu_count() or 2) - 1)
        counts = sorted({default, os.cpu_count() or 1})
        measured = {
            threads: speeds(
                options.pair, threads, cases[:: options.every], prompts[:: options.every], options.repeats
            )
            for threads in counts
        }
        fastest = max(counts, key=lambda threads: measured[threads][0])
        rows.append(("threads", f"{default} by default; the baseline is fastest with {fastest}"))
        rows += [row for threads in counts for row in measured[threads][1]]
    table = "\n".join(["| measured | |", "|---|---|", *(f"| {label} | {value} |" for label, value in rows)])
    print(table)
    if options.table:
        options.table.write_text(f"{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
