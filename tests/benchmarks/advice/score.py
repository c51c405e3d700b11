"""Scores advice, "What are you doing?", Tune and length=auto on a table of `measure.py`, without the machine.

    python tests/benchmarks/advice/score.py [TABLE ...] [--details]

Regret is 1 - the speed reached / the best speed in the table, none included. Advice is followed from the
default until it names no other strategy; a setting that was not measured is replayed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from app.demo import REAL_PAIR, SMALL_PAIR
from app.engine.explain.advice import next_advice
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, Factor
from app.engine.explain.purposes import PURPOSES
from app.engine.fates import Origin, Verdict
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.engine.types import DraftedToken, EmittedToken, Round
from tests.benchmarks.advice.table import NONE, TABLE, Row, read, replay
from tests.benchmarks.advice.tune import score_auto, score_tune

MOST_STEPS = 6
KINDS_OF_WORK = {
    "talk": "Chat", "story": "Chat", "list": "Chat", "rewrite": "Code edits", "code": "Code edits",
    "json": "Structured output", "quote": "Summarise and quote", "long": "Summarise and quote",
}  # fmt: skip


class Scored(NamedTuple):
    """What following some advice came to."""

    row: Row
    path: Sequence[str]  # the settings that were tried, in order
    reached: float  # the last one's speed-up

    @property
    def regret(self) -> float:
        return 1 - self.reached / max(self.row.best[1], self.reached)


def rounds_of(row: Row, spec: str) -> list[Round]:
    """The rounds of a replayed answer, as they would be recorded."""
    done, found, position, offset = replay(row, spec), [], 0, 0.0
    for index, ((drafted, accepted), name, (draft_ms, pass_ms)) in enumerate(
        zip(done.rounds, done.strategies, done.times, strict=True)
    ):
        ids = row.answer_ids[position : position + accepted + 1]
        verdicts = [Verdict.ACCEPTED] * accepted + [Verdict.REJECTED] + [Verdict.IGNORED] * drafted
        p = row.reach[position][1:] if name == "draft-simple" else [None] * drafted
        drafts = [
            DraftedToken(ids[at] if at < len(ids) else 0, b"", verdict, q=1.0, draft_p=p[at])
            for at, verdict in enumerate(verdicts[:drafted])
        ]
        last = Origin.PLAIN if not drafted else Origin.BONUS if accepted == drafted else Origin.RESAMPLED
        tokens = [
            EmittedToken(id, b"", Origin.ACCEPTED if at < accepted else last) for at, id in enumerate(ids)
        ]
        times = (offset, (draft_ms + pass_ms) / 1e3, draft_ms / 1e3, pass_ms / 1e3, 0.0, pass_ms / 1e3)
        asked = tuple(part.name for part in StrategySpec.parse(spec).parts)
        found.append(Round(index, position, *times, tuple(drafts), tuple(tokens), name or None, asked=asked))
        position, offset = position + len(ids), offset + times[1]
    return found


def facts_of(row: Row, spec: str, tried: Sequence[str]) -> AdviceFacts:
    """What is known after an answer with `spec`, once its baseline was measured."""
    rounds = rounds_of(row, spec)
    statistics = Statistics()
    for round in rounds:
        statistics.add(round)

    passes = {tokens: ms / 1e3 for tokens, (ms, _) in row.passes.items()}
    cost = CostModel.of(rounds, rounds_of(row, NONE)).calibrated(passes, row.drafts.get(1, 0.0) / 1e3)

    def factor(name: str) -> Factor:
        value = row.factor(name)
        return Factor(value, 0.97 * value, 1.03 * value)

    return AdviceFacts(
        StrategySpec.parse(spec), statistics, cost, rounds, row.prompt_ids, row.answer_ids, factor(spec),
        {name: factor(name) for name in tried},
    )  # fmt: skip


def default_of(row: Row) -> str:
    """What a person starts with."""
    return SMALL_PAIR.strategy if row.drafts else REAL_PAIR.strategy


def followed(row: Row) -> Scored:
    """The advice from the default on."""
    path = [default_of(row)]
    while len(path) <= MOST_STEPS:
        found = next_advice(facts_of(row, path[-1], path[:-1]))
        named = next((remedy.spec for remedy in found.remedies if remedy.spec), None) if found else None
        if named is None or str(named) == path[-1]:
            break
        path.append(str(named))
        if path[-1] == NONE:
            break
    return Scored(row, path, row.factor(path[-1]))


def by_work(row: Row) -> Scored:
    """What "What are you doing?" sets for the prompt's kind of work."""
    (kind,) = (kind for kind in PURPOSES if kind.name == KINDS_OF_WORK[row.prompt])
    spec = kind.first(bool(row.drafts)).strategy
    return Scored(row, [spec], row.factor(spec))


def shown(title: str, rows: Sequence[Row], way: Callable[[Row], Scored], details: bool) -> None:
    """Print how well a way to choose a setting does."""
    scores = [way(row) for row in rows]
    regrets = [score.regret for score in scores]
    steps = [len(score.path) - 1 for score in scores]
    slower = sum(score.reached < 0.97 for score in scores)
    print(
        f"{title:24} regret median {median(regrets):6.1%}, worst {max(regrets):6.1%}; steps median "
        f"{median(steps):g}, most {max(steps)}; ends below 0.97x in {slower} of {len(rows)}"
    )
    if details:
        for score in sorted(scores, key=lambda score: -score.regret):
            best, factor = score.row.best
            print(
                f"    {score.regret:6.1%} {score.row.case} {score.row.prompt}: {' > '.join(score.path)} = "
                f"{score.reached:.2f}x; best {best} {factor:.2f}x"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, default=[TABLE])
    parser.add_argument("--details", action="store_true", help="each case, the worst first")
    options = parser.parse_args()
    for path in options.tables:
        if not path.exists():
            sys.exit(f"There is no table {path.name}. `make advice-table` measures it on a quiet machine.")
        head, rows = table = read(path)
        print(f"{path.name}: {head.machine}, {head.date}, {len(rows)} prompts of {head.tokens} tokens")
        shown("advice", rows, followed, options.details)
        shown("What are you doing?", rows, by_work, options.details)
        score_auto(table, options.details)
        score_tune(table, options.details)
        pairs = [
            (replay(row, spec).factor, row.of(each)) for row in rows for spec, each in row.settings.items()
        ]
        errors = [abs(said / came - 1) for said, came in pairs]
        print(
            f"{'replayed and measured':24} differ by {median(errors):.1%} (median), 90 % by less than "
            f"{sorted(errors)[int(0.9 * len(errors))]:.1%}"
        )


if __name__ == "__main__":
    main()
