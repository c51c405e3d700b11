"""Scores Tune and length=auto on a table, for `score.py`.

Tune's own search decides what is measured, how often, and when it ends; answers and their times come from
the table. A setting's true speed-up is that of its rounds at their usual times: a single measured answer is
off by some percent. The answers that the search sees have the same error.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import exp, log
from statistics import fmean, median, pstdev
from typing import NamedTuple

import msgspec

from app.engine.explain.predict import Predictor
from app.engine.process.messages import PassSeconds
from app.engine.types import FinishReason, ModelOptions
from app.lab.experiment import Experiment, Job, Lane, Pair, Prompt, make_experiment
from app.lab.runs.record import RunRecord
from app.lab.tune.search import Search, SearchPart
from app.lab.tune.tuned import best_by_kind, winner_of
from app.lab.tune.tuner import PROBE
from tests.benchmarks.advice.table import (
    CASES,
    DEPTH,
    MADE_UP,
    NONE,
    PROMPTS,
    Measured,
    Measurements,
    Row,
    passes_of,
    replay,
    settings,
)  # fmt: skip

BUDGETS = (60.0, 120.0, 300.0)
GROUPS = (("talk", "story", "list", "json"), ("rewrite", "quote", "code", "long"))
"""The prompts of two persons; a third has all of a case."""


class Found(NamedTuple):
    """The end of a search, with true speed-ups."""

    case: str
    asked: int  # prompts
    winner: str
    reached: float  # over all prompts
    best: tuple[float, str]
    by_kind: list[float]  # regrets of the settings for each kind of prompt
    prompts: int  # that the winner was measured on
    seconds: float

    @property
    def regret(self) -> float:
        return 1 - self.reached / self.best[0]


class Searches:
    """Searches on one table."""

    def __init__(self, table: Measurements) -> None:
        self.rows = {(row.case, row.prompt): row for row in table.rows}
        self._predictors: dict[tuple[str, str], Predictor] = {}
        still = [
            log(row.of(each)) for row in table.rows for each in row.settings.values() if not _drafted(each)
        ]
        self.noise = pstdev(still)
        """The relative deviation of one measured speed-up, from answers in which nothing was drafted."""

    def mean(self, rows: Sequence[Row], spec: str) -> float:
        return exp(fmean(log(row.settled(spec)) for row in rows))

    def all(self, budget: float) -> Iterator[Found]:
        for case in CASES:
            for group in (*GROUPS, (*GROUPS[0], *GROUPS[1])):
                rows = [self.rows[case.name, name] for name in group if (case.name, name) in self.rows]
                if len(rows) >= 4:
                    yield self.search(rows, budget)

    def search(self, rows: Sequence[Row], budget: float) -> Found:
        """One search over the prompts of one case."""
        (case,) = (case for case in CASES if case.name == rows[0].case)
        every = settings(case)
        search = Search(_experiment(rows, every), budget)
        self._calibrate(search, rows)
        while (part := search.next()) is not None:
            records: list[RunRecord] = []
            seconds = 0.0
            for job in part.jobs:
                record = self._run(part, rows, job)
                records.append(record)
                seconds += record.whole_seconds
                if search.told(job, [record], seconds):
                    break
            if search.finish(records, seconds) is None:
                break
        won = winner_of(search.done[-1]) if search.done else None
        winner = won.strategy if won is not None else NONE
        kinds = {kind.category: kind.strategy for kind in best_by_kind(search.runs)}
        by_kind = [
            1 - row.settled(kinds.get(row.prompt, NONE)) / max(row.settled(spec) for spec in (NONE, *every))
            for row in rows
        ]
        best = max((self.mean(rows, spec), spec) for spec in (NONE, *every))
        prompts = len({run.category for strategy, run in search.runs if strategy == winner})
        reached = self.mean(rows, winner)
        return Found(case.name, len(rows), winner, reached, best, by_kind, prompts, search.spent)

    def _calibrate(self, search: Search, rows: Sequence[Row]) -> None:
        part = search.calibration(PROBE if rows[0].drafts else "")
        lanes = len(part.experiment.lanes)
        records: list[RunRecord] = []
        for job in part.jobs:
            records.append(self._run(part, rows, job))
            if len(records) % lanes == 0 and sum(each.whole_seconds for each in records) > part.seconds:
                break
        asked = part.experiment.prompts[: len(records) // lanes]
        predictors = [self._predictor(_row(rows, prompt)) for prompt in asked]
        search.calibrated(predictors, records, sum(each.whole_seconds for each in records))

    def _predictor(self, row: Row) -> Predictor:
        from tests.benchmarks.advice.score import facts_of

        key = row.case, row.prompt
        if key not in self._predictors:
            self._predictors[key] = Predictor(facts_of(row, PROBE if row.drafts else NONE, ()))
        return self._predictors[key]

    def _run(self, part: SearchPart, rows: Sequence[Row], job: Job) -> RunRecord:
        """An answer, with noise of its own and its speed-up."""
        row = _row(rows, part.experiment.prompts[job.prompt])
        spec = part.experiment.lanes[job.lane].strategy

        def noise(lane: int) -> float:
            asked = f"{row.case} {row.prompt} {part.experiment.lanes[lane].strategy}"
            key = f"{asked} {job.repeat} {len(part.jobs)}"
            return exp(random.Random(key).gauss(0.0, self.noise / 2**0.5))

        true = row.priced(spec)
        own = true.factor * noise(job.lane)
        return msgspec.structs.replace(
            RunRecord.of_failed(part.experiment, job, ""),
            finish_reason=FinishReason.LENGTH,
            n_tokens=len(row.answer_ids),
            seconds=len(row.answer_ids) * row.plain_ms / 1e3 / own,
            prompt_seconds=len(row.prompt_ids) * row.prompt_ms / 1e3,
            drafted=true.drafted,
            accepted=true.accepted,
            speedup=own / noise(0) if spec != NONE else None,
        )


def _experiment(rows: Sequence[Row], every: Sequence[str]) -> Experiment:
    pair = Pair(ModelOptions("target"), ModelOptions("draft") if rows[0].drafts else None)
    prompts = tuple(Prompt(PROMPTS[row.prompt], row.prompt) for row in rows)
    tokens = max(len(row.answer_ids) for row in rows)
    return make_experiment(
        Experiment(pair, tuple(map(Lane, every)), prompts, max_tokens=tokens), len(every) + 1
    )


def _row(rows: Sequence[Row], prompt: Prompt) -> Row:
    return next(row for row in rows if row.prompt == prompt.category)


def score_tune(table: Measurements, details: bool) -> float:
    """Print how well Tune does in each budget; returns the median regret in 120 s."""
    searches = Searches(table)
    medians = {}
    for budget in BUDGETS:
        found = sorted(searches.all(budget), key=lambda each: -each.regret)
        medians[budget] = median(each.regret for each in found)
        by_kind = sorted(regret for each in found for regret in each.by_kind)
        few = sum(each.winner != NONE and each.prompts < min(3, each.asked) for each in found)
        title = f"Tune in {budget:g} s"
        print(
            f"{title:24} regret median {medians[budget]:6.1%}, worst {found[0].regret:6.1%}; "
            f"by kind median {median(by_kind):.1%}, 90 % below {by_kind[int(0.9 * len(by_kind))]:.1%}; "
            f"slowest {min(each.reached for each in found):.3f}x; on fewer than 3 prompts {few} of "
            f"{len(found)}; takes {median(each.seconds for each in found):.0f} s"
        )
        for each in found if details else ():
            factor, spec = each.best
            won = f"{each.winner} {each.reached:.2f}x, on {each.prompts} prompts"
            print(
                f"    {each.regret:6.1%} {each.case}, {each.asked} prompts: {won}; best {spec} {factor:.2f}x"
            )
    return medians[120.0]


# --- length=auto

FIXED = (
    "draft-simple:n_max=16",
    "draft-simple:n_max=8",
    "draft-simple:n_max=4",
    "draft-simple:n_max=2",
    "draft-simple:n_max=8:p_min=0.5",
    "prompt-lookup",
    "suffix:n_max=8",
    "ngram-cache",
    "ngram-simple:size_n=4:size_m=8",
    "ngram-mod:n_match=8:n_min=2:n_max=16",
    "suffix:n_max=8+draft-simple:n_max=4",
)
LONG = 600  # tokens of a long text
OFF = 0.1  # error of a calibration
TEXTS: dict[str, Callable[[int], float]] = {
    "always bad": lambda _at: 0.1,
    "bad, then good": lambda at: 0.0 if at < 40 else 0.9,
    "in turn": lambda at: 0.9 if (at // 50) % 2 else 0.1,
    "good": lambda _at: 0.9,
}
"""The chance that the draft model is right, by place."""


def long_row(row: Row, text: str, seed: int) -> Row:
    """A long text with such acceptance, at a row's costs."""
    chance, right = random.Random(f"{text} {seed}"), TEXTS[text]
    agrees = [chance.random() < right(at) for at in range(LONG)]
    reach = []
    for at in range(LONG):
        run = next((k for k in range(DEPTH) if at + k >= LONG or not agrees[at + k]), DEPTH)
        reach.append([float(run), *[1.0] * DEPTH])
    return msgspec.structs.replace(row, answer_ids=list(range(MADE_UP, MADE_UP + LONG)), reach=reach)


def score_auto(table: Measurements, details: bool) -> float:
    """Print how well length=auto does; returns the median regret where the machine was timed."""
    slow = []
    _replayed(table, "not timed", lambda _row: None, details=False)
    regret = _replayed(table, "timed", passes_of, details)
    _replayed(table, f"timed, {OFF:.0%} off", partial(passes_of, error=OFF), details=False)
    for row in table.rows:
        for spec, each in row.settings.items():
            if "length=auto" in spec:
                slow.append((row.of(each) < 0.97, row.settled(spec) < 0.97, not _drafted(each)))
    print(
        f"{'length=auto, measured':24} below 0.97x {sum(at for at, *_ in slow)} of {len(slow)}; at usual "
        f"times of passes {sum(at for _, at, _ in slow)}; {sum(at and none for at, _, none in slow)} of the "
        f"{sum(none for *_, none in slow)} in which nothing was drafted"
    )
    costly = [
        *{row.case: row for row in table.rows if row.drafts}.values()
    ]  # prompts of a case cost the same
    for text in TEXTS if costly else ():
        found = [
            (
                replay(long, "draft-simple:n_max=4:length=auto", passes=passes_of(long)).factor,
                replay(long, "draft-simple:n_max=4").factor,
            )
            for seed, row in enumerate(costly)
            for long in [long_row(row, text, seed)]
        ]
        print(
            f"{f'auto, {LONG} tokens, {text}':40} {median(auto for auto, _ in found):.2f}x (least "
            f"{min(auto for auto, _ in found):.3f}x), fixed {median(fixed for _, fixed in found):.2f}x"
        )
    return regret


def _replayed(
    table: Measurements, what: str, known: Callable[[Row], PassSeconds | None], details: bool
) -> float:
    """Print how well length=auto does where this is known of the machine; returns the median regret."""
    shares = []
    ended: dict[bool, list[float]] = {True: [], False: []}  # speed-ups, by whether the answer ended early
    for row in table.rows:
        for spec in FIXED:
            if row.drafts or "draft-simple" not in spec:
                auto = replay(row, f"{spec}:length=auto", passes=known(row)).factor
                fixed = replay(row, spec).factor
                shares.append((auto / max(1.0, fixed), auto, fixed, f"{row.case} {row.prompt} {spec}"))
                ended[len(row.answer_ids) < row.max_tokens].append(auto)
    shares.sort()
    regret = 1 - median(share for share, *_ in shares)
    print(
        f"{f'length=auto, {what}':24} regret median {regret:6.1%}, mean "
        f"{1 - fmean(share for share, *_ in shares):.1%}, worst {1 - shares[0][0]:6.1%}; below 0.97x "
        + "; ".join(
            f"{sum(auto < 0.97 for auto in found)} of {len(found)} {answers} (slowest {min(found):.3f}x)"
            for answers, found in (("whole answers", ended[False]), ("that ended early", ended[True]))
            if found
        )
    )
    for share, auto, fixed, name in shares[:15] if details else ():
        print(f"    {1 - share:6.1%} {name}: {auto:.2f}x, fixed {fixed:.2f}x")
    return regret


def _drafted(measured: Measured) -> bool:
    return any(not rounds.startswith("0/") for rounds in measured.rounds)
