"""Scores advice, "What are you doing?", Tune and length=auto on the tables of `measure.py`.

    python tests/benchmarks/advice/score.py [TABLE ...] [--details]

Regret is 1 - the speed reached / the best speed of any measured setting, none included. Advice is followed
from the default until it names no other strategy; a setting that was not measured is replayed.

Speeds are taken in two ways. *As measured*, a speed has the noise of one answer, and the best of 60 noisy
settings looks too fast: the line "the best by rounds" shows the regret of perfect knowledge. *By rounds*, a
speed is computed from a setting's measured rounds and the median time of such passes in all answers to the
prompt. The goals apply to the regret by rounds over all prompts. Advice sees the measured factors,
which may mislead it.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from app.demo import REAL_PAIR, SMALL_PAIR
from app.engine.drafters.registry import KINDS
from app.engine.explain import predict
from app.engine.explain.advice import next_advice
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, Factor, Tried
from app.engine.explain.predict import Predictor, is_clear
from app.engine.explain.purposes import PURPOSES, first_strategy, typical
from app.engine.explain.walk import Text, Walked
from app.engine.fates import Origin, Verdict
from app.engine.lengths.auto import Auto
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.engine.types import DraftedToken, EmittedToken, Round
from tests.benchmarks.advice.table import CASES, NONE, TABLES, Measurements, Row, passes_of, read, replay
from tests.benchmarks.advice.tune import score_auto, score_tune
from tests.benchmarks.advice.typical import file_name

MOST_STEPS = 6
MEDIAN, WORST, STEPS, AUTO, TUNE, ERROR = 0.03, 0.15, 3, 0.05, 0.03, 0.1  # the goals


class Scored(NamedTuple):
    """What following some advice came to."""

    row: Row
    path: Sequence[str]  # the settings that were tried, in order
    expected: Mapping[str, Factor] = {}  # what was said of them beforehand

    def regret(self, by: Callable[[Row, str], float]) -> float:
        """By `Row.factor` or `Row.settled`."""
        return max(0.0, 1 - by(self.row, self.path[-1]) / self.row.best(by)[1])


def remembered(walk: Callable[..., Walked]) -> Callable[..., Walked]:
    """The predictor's walk, which is not done again where lengths are fixed: costs decide nothing then, and
    advice, Tune and the predictions ask for the same ones."""
    known: dict[tuple[object, ...], tuple[Walked, tuple[Any, ...]]] = {}

    def walked(text: Text, spec: StrategySpec, cost: CostModel, chance: random.Random) -> Walked:
        if spec.length.by_clock:
            return walk(text, spec, cost, chance)
        drafts: tuple[object, ...] = ()
        if any(KINDS[part.name].by_model for part in spec.parts):
            drafts = (*text.places, *map(tuple, text.pools), text.p_min, chance.getstate())
        key = spec, tuple(text.prompt_ids), tuple(text.ids), text.max_tokens, drafts
        if key not in known:
            known[key] = walk(text, spec, cost, chance), chance.getstate()
        found, state = known[key]
        if drafts:
            chance.setstate(state)
        return found

    return walked


predict.walk = remembered(predict.walk)  # type: ignore[attr-defined]


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
            DraftedToken(
                ids[at] if at < len(ids) else 0, b"", verdict, q=1.0, draft_p=p[at] if row.has_p else None
            )
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

    passes = passes_of(row)
    cost = CostModel.of(rounds, rounds_of(row, NONE)).calibrated(passes)
    # The slowest and the fastest of three runs, by how far the baselines were apart.
    reach = row.plain_spread**0.5

    def factor(name: str) -> Factor:
        value = row.factor(name)
        return Factor(value, value / reach, value * reach)

    return AdviceFacts(
        StrategySpec.parse(spec), statistics, cost, rounds, row.prompt_ids, row.answer_ids, factor(spec),
        {name: Tried(factor(name), rounds_of(row, name)) for name in tried}, max_tokens=row.max_tokens,
    )  # fmt: skip


def default_of(row: Row) -> str:
    """What a person starts with; SmolLM2 without its head, which the tables do not have."""
    return SMALL_PAIR.strategy if row.drafts else str(StrategySpec.parse(REAL_PAIR.strategy).without_draft())


def followed(row: Row) -> Scored:
    """The advice from the default on."""
    path, expected = [default_of(row)], dict[str, Factor]()
    while len(path) <= MOST_STEPS:
        found = next_advice(facts_of(row, path[-1], path[:-1]))
        remedy = next((remedy for remedy in found.remedies if remedy.spec), None) if found else None
        if remedy is None or str(remedy.spec) == path[-1]:
            break
        path.append(str(remedy.spec))
        if path[-1] in path[:-1] or path[-1] == NONE:
            break
        if remedy.expected is not None:
            expected[path[-1]] = remedy.expected
    return Scored(row, path, expected)


def by_work(row: Row, *, others: bool = False) -> Scored:
    """What "What are you doing?" sets for the prompt's kind of work once this machine was calibrated. With
    `others` it knows only prompts of other models, as if this one had never been measured."""
    kind = next(kind for kind in PURPOSES if row.prompt in kind.like)
    case = next(case for case in CASES if case.name == row.case)
    pair = file_name(case.target), file_name(case.draft)
    family = pair[0][:8]  # the folder of the bundled pair, or the name of a model's family
    known = [each for each in typical().prompts if not others or not each.target.startswith(family)]
    first = first_strategy(kind, *pair, passes_of(row), known)
    return Scored(row, [first.strategy], {first.strategy: first.expected} if first.expected else {})


def best_by_rounds(row: Row) -> Scored:
    return Scored(row, [row.best(Row.settled)[0]])


def shown(title: str, rows: Sequence[Row], way: Callable[[Row], Scored], details: bool) -> list[Scored]:
    """Print how well a way to choose a setting does."""
    scores = [way(row) for row in rows]
    steps = [len(score.path) - 1 for score in scores]
    print(f"{title}: steps median {median(steps):g}, most {max(steps)}")
    for name, by in (("by rounds", Row.settled), ("as measured", Row.factor)):
        regrets = [each.regret(by) for each in scores]
        reached = [by(score.row, score.path[-1]) for score in scores]
        print(
            f"    {name:12} regret median {median(regrets):6.1%}, worst {max(regrets):6.1%}; ends "
            f"below 0.97x in {sum(factor < 0.97 for factor in reached)} of {len(rows)}, slowest "
            f"{min(reached):.3f}x"
        )
    if details:
        for score in sorted(scores, key=lambda score: -score.regret(Row.settled)):
            row, last = score.row, score.path[-1]
            best, factor = row.best(Row.settled)
            print(
                f"    {score.regret(Row.settled):6.1%} ({score.regret(Row.factor):.1%}) {row.case} "
                f"{row.prompt}: {' > '.join(score.path)} = {row.settled(last):.2f}x "
                f"({row.factor(last):.2f}x); best {best} {factor:.2f}x"
            )
    return scores


def ranges(title: str, said: Iterable[tuple[Factor, float]]) -> float:
    """Print how far predicted factors are from measured ones, and how many are inside the shown range.
    Returns the median error."""
    every = [*said]
    pairs = [(factor, came) for factor, came in every if is_clear(factor)]
    if not pairs:
        print(f"{title}: of {len(every)} ranges, each spans a factor of two and is not shown")
        return 0.0
    errors = [abs(factor.value / came - 1) for factor, came in pairs]
    inside = fmean(factor.low <= came <= factor.high for factor, came in pairs)
    width = median(factor.high / factor.low for factor, _ in pairs)
    print(
        f"{title}: differs from what was measured by {median(errors):.1%} (median); {inside:.0%} of "
        f"{len(pairs)} inside the shown range, whose ends are {width:.2f} apart (median); "
        f"{len(every) - len(pairs)} span a factor of two and are not shown"
    )
    return median(errors)


def every_prediction(row: Row, *, auto: bool) -> Iterator[tuple[Factor, float]]:
    """What is predicted after the default was measured, of every setting that was measured, with length=auto
    or without it."""
    predictor = Predictor(facts_of(row, default_of(row), []))
    for spec, measured in row.settings.items():
        parsed = StrategySpec.parse(spec)
        factor = predictor.as_measured(parsed)
        if (
            (parsed.length == Auto()) is auto
            and factor is not None
            and spec != default_of(row)
            and predictor.is_told(parsed)
        ):
            yield factor, row.of(measured)


class Scores(NamedTuple):
    """The scores of a table."""

    advice: list[Scored]
    auto: float  # regret
    tune: float  # regret
    prediction: float  # relative error


def scored(table: Measurements, details: bool) -> Scores:
    """Print all scores of a table."""
    head, rows = table
    print(f"{head.machine}, {head.date}: {len(rows)} prompts of {head.tokens} tokens")
    shown("the best by rounds", rows, best_by_rounds, False)
    advice = shown("advice", rows, followed, details)
    ranges(
        "what advice expects",
        (
            (expected, each.row.factor(spec))
            for each in advice
            for spec, expected in each.expected.items()
            if spec in each.row.settings
        ),
    )
    error = ranges("every prediction", (pair for row in rows for pair in every_prediction(row, auto=False)))
    ranges("of length=auto", (pair for row in rows for pair in every_prediction(row, auto=True)))
    shown("What are you doing?", rows, by_work, details)
    shown("What are you doing?, of other models", rows, partial(by_work, others=True), details)
    auto, tune = score_auto(table, details), score_tune(table, details)
    alone = [row.of(each) for row in rows for each in row.settings.values() if {*each.rounds} == {"0/0"}]
    print(
        f"noise: {len(alone)} settings that never drafted measured {min(alone):.2f}x to {max(alone):.2f}x\n"
    )
    return Scores(advice, auto, tune, error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, default=TABLES)
    parser.add_argument("--details", action="store_true", help="each case, the worst first")
    parser.add_argument("--score", action="store_true", help="measure nothing, as without it: for scripts")
    options = parser.parse_args()
    found = []
    for path in options.tables:
        if not path.exists():
            sys.exit(f"There is no table {path.name}. `make advice-table` measures it on a quiet machine.")
        print(f"{path.name}: ", end="")
        found.append(scored(read(path), options.details))
    advice = [score for each in found for score in each.advice]
    regrets = [score.regret(Row.settled) for score in advice]
    middle, worst, steps = median(regrets), max(regrets), max(len(score.path) - 1 for score in advice)
    auto, tune = max(each.auto for each in found), max(each.tune for each in found)
    said = max(each.prediction for each in found)
    print(
        f"regret median {middle:.3f} worst {worst:.3f} steps {steps} auto {auto:.3f} tune {tune:.3f} "
        f"prediction {said:.3f}"
    )
    missed = middle > MEDIAN or worst > WORST or steps > STEPS or auto > AUTO or tune > TUNE or said > ERROR
    sys.exit(missed)


if __name__ == "__main__":
    main()
