"""Judge a pair on the frozen prompts and measure what speculation gives on them: the model card's table.

Runs in the app's environment, with the app's own engine, from the repository's root:

    python packaging/demo_pair/evaluate.py --pair resources/demo_pair [--wrong] [--table FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# Read by the OpenMP runtime when the library is loaded, so it has to stand before the import.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import Engine, GenerationRequest, Message, ModelOptions
from app.engine.process.messages import Finished, RoundFinished
from app.engine.types import Round, Totals

import judge

CONTEXT = 2048
MOST_TOKENS = 400
SIMPLE = "draft-simple:n_max=4"
AUTO = "draft-simple:n_max=8:length=auto"
COPYING = ("prompt-lookup:num_pred_tokens=8", "ngram-map-k4v:size_n=2:size_m=12", "suffix")
COPIES = ("rename", "rewrite", "quote")
"""Kinds whose answers repeat much of the question."""


@dataclass(frozen=True, slots=True)
class Answer:
    rounds: Sequence[Round]
    totals: Totals

    @property
    def speed(self) -> float:
        """Tokens a second from the start of round 0."""
        return sum(len(round.emitted) for round in self.rounds) / self.totals.seconds

    @property
    def drafted(self) -> int:
        return sum(len(round.drafted) for round in self.rounds)

    @property
    def accepted(self) -> int:
        return sum(round.accepted for round in self.rounds)


def answered(engine: Engine, case: judge.Case, strategy: str) -> Answer:
    """The greedy answer from a cold state."""
    messages = tuple(Message(role, content) for role, content in case.messages)
    request = GenerationRequest(messages=messages, strategy=strategy, max_tokens=MOST_TOKENS, cold=True)
    rounds: list[Round] = []
    for event in engine.generate(request):
        match event:
            case RoundFinished():
                rounds.append(event.round)
            case Finished():
                return Answer(rounds, event.totals)
    raise RuntimeError("the engine did not finish")


def loaded(pair: Path, draft: str, threads: int = 0) -> Engine:
    """The pair in the engine of this process; `threads` are the target's: a draft this small has one."""
    return Engine(
        ModelOptions(str(pair / "target.gguf"), ctx_size=CONTEXT, threads=threads),
        ModelOptions(str(pair / draft), ctx_size=CONTEXT),
    )


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(1, whole):.0%})"


def right_answers(engine: Engine, cases: Sequence[judge.Case], wrong: bool) -> list[tuple[str, str]]:
    """Rows of the table: how many answers are right, over all and by kind."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for case in cases:
        answer = answered(engine, case, "none").totals.text
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
            for round in answered(engine, case, SIMPLE).rounds:
                fates.update(
                    {"accepted": round.accepted, "rejected": round.rejected, "ignored": round.ignored}
                )
    label = f"acceptance of `{SIMPLE}`, {draft} (0.6 to 0.95)"
    told = ", ".join(f"{count} {fate}" for fate, count in fates.items())
    return [(label, f"{fates['accepted'] / max(1, fates.total()):.2f}: {told}")]


def speed_ups(engine: Engine, case: judge.Case, strategies: Iterable[str], repeats: int) -> dict[str, float]:
    """Median tokens/s of each strategy over those of `none`, all taking turns; for `none` its own."""
    speeds: dict[str, list[float]] = {}
    order = ["none", *strategies]
    for repeat in range(repeats):
        turn = repeat % len(order)
        for strategy in order[turn:] + order[:turn]:
            speeds.setdefault(strategy, []).append(answered(engine, case, strategy).speed)
    medians = {strategy: statistics.median(found) for strategy, found in speeds.items()}
    return {key: found / medians["none"] for key, found in medians.items()} | {"none": medians["none"]}


def speeds(
    pair: Path, threads: int, cases: Sequence[judge.Case], repeats: int
) -> tuple[float, list[tuple[str, str]]]:
    """The baseline's tokens/s and rows of the table: medians over the prompts, cold."""
    with loaded(pair, "draft.gguf", threads) as engine:
        answered(engine, cases[0], SIMPLE)  # wakes the processor
        found = [(case.kind, speed_ups(engine, case, (SIMPLE, AUTO, *COPYING), repeats)) for case in cases]
    baseline = statistics.median(ratios["none"] for _, ratios in found)

    def median(strategy: str, kinds: Iterable[str]) -> str:
        return f"{statistics.median(ratios[strategy] for kind, ratios in found if kind in kinds):.2f}"

    every = {kind for kind, _ in found}
    where = f"{threads} thread{'s' * (threads > 1)}"
    rows = [(f"baseline, {where}", f"{baseline:.0f} tokens/s")]
    rows.append((f"speed-up of `{SIMPLE}`, {where} (at least 1.3)", median(SIMPLE, every)))
    rows += [
        (
            f"speed-up of `{name}` on {', '.join(COPIES)}, {where} (one at least 1.5)",
            f"{median(name, COPIES)}: {', '.join(f'{kind} {median(name, [kind])}' for kind in COPIES)}",
        )
        for name in COPYING
    ]
    rows.append((f"speed-up of `{AUTO}`, {where} (at least 1.2)", median(AUTO, every)))
    return baseline, rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pair", type=Path, required=True)
    parser.add_argument("--wrong", action="store_true", help="print the answers that are wrong")
    parser.add_argument("--only-judge", action="store_true", help="measure nothing but right answers")
    parser.add_argument("--every", type=int, default=2, help="measure speed on every so manieth prompt")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--table", type=Path, help="write the table here too")
    options = parser.parse_args()
    cases = judge.load()
    with loaded(options.pair, "draft.gguf") as engine:
        rows = right_answers(engine, cases, options.wrong)
    if not options.only_judge:
        for path in sorted(options.pair.glob("*draft.gguf")):
            rows += acceptance(options.pair, path.name, cases)
        default = max(1, (os.cpu_count() or 2) - 1)
        counts = sorted({default, os.cpu_count() or 1})
        measured = {
            threads: speeds(options.pair, threads, cases[:: options.every], options.repeats)
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
