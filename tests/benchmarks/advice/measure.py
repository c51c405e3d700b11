"""Measures every candidate setting on every case of `table.py`, once, for `score.py`.

    python tests/benchmarks/advice/measure.py [--target FILE] [--gemma FILE] [--out FILE] [--only NAME ...]
                                              [--tokens 64] [--minutes 25] [--auto]

Settings whose rounds are the same on a prompt are measured once. Settings that would lose more than a
quarter, by their rounds and the times of passes, are only replayed. The others take turns in a random order.
They are compared with answers without drafts, which are measured between them. On several threads each
setting is measured three times, and the fastest answer counts: threads that wait for each other can double a
time.

Both models read the prompt once, and no time includes this. Drafters are new for every answer. length=auto
knows the times of passes here. An interrupted run continues, because the rows in the file are kept. `--only`
names cases or prompts; `--auto` measures length=auto again in existing rows. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

os.environ.setdefault("GOMP_SPINCOUNT", "1000")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import msgspec
import numpy as np

from app.base.paths import find_paths
from app.engine import Engine, GenerationRequest, Message, ModelOptions
from app.engine.devices.memory import cpu_name
from app.engine.drafters.base import RunContext
from app.engine.native.model import quantise
from app.engine.process.messages import PassSeconds
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategySpec
from app.engine.types import Sampling
from app.engine.warm_drafters import WarmDrafters
from tests.benchmarks.advice.table import (
    CASES,
    FORMAT,
    NONE,
    PROMPTS,
    TABLE,
    Case,
    Head,
    Measured,
    Row,
    replay,
    settings,
)  # fmt: skip
from tests.benchmarks.measure import Answer, measure

EVERY = 5  # settings between two answers without drafts
REPEATS = 3  # answers of each setting, on several threads
HOPELESS = 0.75  # a replayed factor
TODAY = datetime.datetime.now(datetime.UTC).date().isoformat()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--target", type=Path, default=find_paths().real_target, help="SmolLM2 (set-up's)")
    parser.add_argument("--gemma", type=Path, help="Gemma 3 270M; left out without it")
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--only", nargs="*", default=[], choices=[*(case.name for case in CASES), *PROMPTS])
    parser.add_argument("--tokens", type=int, default=64, help="tokens an answer")
    parser.add_argument("--minutes", type=float, default=25.0, help="begin no further prompt after this")
    parser.add_argument("--auto", action="store_true", help="measure length=auto again in rows that lack it")
    options = parser.parse_args()
    head = Head(FORMAT, cpu_name(), TODAY, options.tokens)
    kept: dict[tuple[str, str], Row] = {}
    if options.out.exists():
        first, *lines = options.out.read_bytes().splitlines()
        head = msgspec.json.decode(first, type=Head)
        kept = {
            (row.case, row.prompt): row for row in (msgspec.json.decode(each, type=Row) for each in lines)
        }
    ends = time.monotonic() + 60 * options.minutes
    cases = {case.name for case in CASES} & {*options.only} or {case.name for case in CASES}
    prompts = [name for name in PROMPTS if name in options.only] or [*PROMPTS]
    for case in CASES:
        rows_of_case = {name: kept.get((case.name, name)) for name in prompts}
        left = [
            name for name, row in rows_of_case.items() if (row and not row.auto if options.auto else not row)
        ]
        if case.name not in cases or not left or (case.target == "gemma" and options.gemma is None):
            continue
        began = time.monotonic()
        for row in rows(case, left, options, ends, kept):
            kept[row.case, row.prompt] = row
            options.out.write_bytes(
                b"".join(msgspec.json.encode(each) + b"\n" for each in (head, *kept.values()))
            )
        print(f"{case.name}: {time.monotonic() - began:.0f} s", flush=True)


def rows(
    case: Case,
    prompts: Sequence[str],
    options: argparse.Namespace,
    ends: float,
    kept: Mapping[tuple[str, str], Row],
) -> Iterator[Row]:
    """The case's prompts, one row each, until the time `ends`."""
    if time.monotonic() > ends:
        return
    target, draft = (model(name, case, options) for name in (case.target, case.draft))
    assert target is not None
    with Engine(target, draft) as engine:
        for name in prompts:
            if time.monotonic() > ends:
                return
            run = PromptRun(engine, case, name, options.tokens)
            yield run.with_auto(kept[case.name, name]) if options.auto else run.row()


def model(name: str, case: Case, options: argparse.Namespace) -> ModelOptions | None:
    """A file by its name in `CASES`; a quantisation that is not here is made."""
    if not name:
        return None
    if name == "gemma":
        path = options.gemma
    elif name.startswith("bundled:"):
        path = find_paths().resources / "demo_pair" / name.removeprefix("bundled:")
    elif name == "Q4_1":
        path = options.target
    else:
        folder = find_paths().quantised
        made = folder / f"{options.target.stem.rsplit('.', 1)[0]}.{name}.gguf"
        path = next(folder.glob(f"SmolLM2-135M-Instruct*/*.{name}.gguf"), made)
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            quantise(options.target.resolve(), name, path)
    return ModelOptions(str(path), ctx_size=2048, threads=case.threads)


class PromptRun:
    """The measurements of one prompt."""

    def __init__(self, engine: Engine, case: Case, prompt: str, tokens: int) -> None:
        self._engine, self._case, self._prompt, self._tokens = engine, case, prompt, tokens
        self._passes: dict[int, list[float]] = defaultdict(list)
        self._drafts: dict[int, list[float]] = defaultdict(list)
        self._known: PassSeconds | None = None

    def with_auto(self, row: Row) -> Row:
        """The row with its settings of length=auto measured again."""
        self._read()
        settings = [spec for spec in row.settings if "length=auto" in spec]
        again = msgspec.structs.replace(row, settings={})
        self._measure(again, settings)
        return msgspec.structs.replace(row, settings=row.settings | again.settings, auto=TODAY)

    def row(self) -> Row:
        ids = list(self._engine.prompt_ids(self._request(NONE)))
        plain, timed = self._read()
        for _ in range(2):
            for size, seconds in timed.items():
                self._passes[size].append(seconds * 1e3)
        answer = [token.id for round in plain.rounds for token in round.emitted]
        reach, drafts = self._reach(ids, answer) if self._case.draft else ([], {})
        row = Row(
            self._case.name, self._prompt, self._case.threads, ids, answer,
            round(plain.totals.prompt_seconds / len(ids) * 1e3, 4), timed[1] * 1e3, 1.0,
            {size: (seconds * 1e3, 1) for size, seconds in timed.items()}, drafts, reach,
            {}, {}, self._tokens, TODAY,
        )  # fmt: skip
        leaders: dict[object, str] = {}
        for spec in settings(self._case):
            leader = leaders.setdefault(self._rounds(row, spec), spec)
            if leader != spec:
                row.same[spec] = leader
        self._measure(row, [spec for spec in leaders.values() if replay(row, spec).factor > HOPELESS])
        row.passes = {
            size: (round(median(times), 3), len(times)) for size, times in sorted(self._passes.items())
        }
        row.drafts |= {
            k: round(median(times), 3) for k, times in sorted(self._drafts.items()) if len(times) > 2
        }
        return row

    def _read(self) -> tuple[Answer, dict[int, float]]:
        """An answer without drafts, which reads the prompt, and the seconds of passes behind it."""
        plain = self._asked(NONE)
        self._known = self._engine.force(()).seconds
        return plain, self._known.target

    def _rounds(self, row: Row, spec: str) -> object:
        """What settings with equal times have in common. Times decide the rounds of length=auto, and a draft
        model's last token is not in its draft if p_min ended it."""
        parsed = StrategySpec.parse(spec)
        if parsed.length.by_clock:
            alone = replay(row, spec.replace(":length=auto", ""))
            return (spec if any(drafted for drafted, _ in alone.rounds) else (),)
        done = replay(row, spec)
        with_model = [str(part) for part in parsed.parts if part.name == "draft-simple" and part.params.p_min]
        return (*done.rounds, *done.strategies, *with_model) if any(done.strategies) or with_model else ()

    def _measure(self, row: Row, specs: list[str]) -> None:
        """Measure in a random order, between answers of the baseline."""
        random.Random(f"{row.case} {row.prompt}").shuffle(specs)
        order = [NONE]
        for at in range(0, len(specs), EVERY):
            order += [*specs[at : at + EVERY], NONE]
        repeats = REPEATS if self._case.threads > 1 else 1
        runs = [[self._asked(spec) for spec in order] for _ in range(repeats)]
        answers = [min(same, key=lambda each: each.loop_seconds) for same in zip(*runs, strict=True)]
        plain = [at for at, spec in enumerate(order) if spec == NONE]
        for first, last in pairwise(plain):
            for at in range(first + 1, last):
                share = (at - first) / (last - first)
                row.settings[order[at]] = self._compared(
                    row, answers[at], answers[first], answers[last], share
                )
        times = [answers[at].loop_seconds / answers[at].tokens * 1e3 for at in plain]
        row.plain_ms, row.plain_spread = round(median(times), 4), round(max(times) / min(times), 3)

    def _compared(self, row: Row, answer: Answer, before: Answer, after: Answer, share: float) -> Measured:
        def factor(seconds: str) -> float:
            first, last, own = (getattr(each, seconds) / each.tokens for each in (before, after, answer))
            return round((first + (last - first) * share) / own, 4)

        rounds = Counter(f"{len(round.drafted)}/{round.accepted}" for round in answer.rounds)
        ids = [token.id for round in answer.rounds for token in round.emitted]
        drafting = sum(round.draft_seconds for round in answer.rounds) * 1e3
        return Measured(
            factor("loop_seconds"),
            factor("processor_seconds"),
            dict(rounds),
            round(drafting, 2),
            ids != row.answer_ids,
        )

    def _asked(self, spec: str) -> Answer:
        """An answer with new drafters, of models that have read the prompt."""
        self._engine.warm = WarmDrafters(self._engine.new_drafter)
        answer = measure(self._engine, self._request(spec), passes=self._known)
        for each in answer.rounds[1:]:
            self._passes[len(each.drafted) + 1].append(each.verify_seconds * 1e3)
            if each.strategy == "draft-simple" and "+" not in spec:
                self._drafts[len(each.drafted)].append((each.draft_seconds - each.read_seconds) * 1e3)
        return answer

    def _request(self, spec: str) -> GenerationRequest:
        text = PROMPTS[self._prompt]
        asked = {"messages": (Message("user", text),)} if self._case.chat else {"prompt": text}
        return GenerationRequest(strategy=spec, max_tokens=self._tokens, **asked)

    def _reach(self, prompt: list[int], answer: list[int]) -> tuple[list[list[float]], dict[int, float]]:
        """See `Row.reach`; and the time of a draft of one token and of many, in ms."""
        (part,) = StrategySpec.parse(f"draft-simple:n_max={self._case.depth}").parts
        drafter = self._engine.new_drafter(part)
        drafter.begin(
            np.array(prompt, np.int32),
            RunContext(Sampler(Sampling()), Draws(0), len(prompt), self._engine.vocabulary.end_ids),
        )
        truth, reach, seconds = np.array(prompt + answer, np.int32), [], []
        for at in range(len(answer)):
            began = time.perf_counter()
            proposal = drafter.propose(truth[: len(prompt) + at], self._case.depth)
            seconds.append(time.perf_counter() - began)
            ids, rest = proposal.ids, answer[at:]
            agreed = next(
                (i for i, (a, b) in enumerate(zip(ids, rest, strict=False)) if a != b),
                min(len(ids), len(rest)),
            )
            # Through text, p is not known: p_min ends no draft then.
            known = proposal.thoughts.draft_p or [1.0] * len(ids)
            reach.append([agreed, *(round(p, 2) for p in known)])
        whole = median(seconds[1:]) * 1e3
        return reach, {1: whole / self._case.depth, self._case.depth: whole}


if __name__ == "__main__":
    main()
