"""The sampling law through the real loop: what is emitted against what the target alone would emit.

The exact joint law of the first tokens is computed from the target's own logits, prefix by prefix, by the
plain reference sampler. Then the loop itself (generate.verify_rounds, with real models) is run many times,
and the counts of emitted tokens are tested against that law by chi-square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from scipy import stats
from typing_extensions import override

from app.engine.drafters.base import Drafter, Proposal, Resources, RunContext, StrategyKind
from app.engine.engine import Engine
from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import Outset, RoundCost, StrategyLimits
from app.engine.loop.generate import Generation, TokenBuffer, Verified, finished, verify_rounds
from app.engine.loop.handover import ConsumerLeft, Handover
from app.engine.loop.text import TextStream
from app.engine.native.head_context import HeadContext
from app.engine.params import param
from app.engine.plugins import register, unregister
from app.engine.sampling.draws import Draws
from app.engine.sampling.dry import breakers_of
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Round, Sampling
from tests.files.tiny import Tiny
from tests.reference import probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

LENGTH = 3  # tokens of the joint law
SMALL = 5.0  # cells expected less often than this are pooled
PROMPT = "abcabgabcfab"
FALSE_ALARM = 1e-4  # how often a correct engine may fail, in all tests of a run together

TARGET = Tiny(
    name="law-target", letters="abcdefgh", n_layers=1, n_embd=32, n_heads=2, n_ff=32, n_ctx=256, scale=0.45
)
OWN = Tiny(
    name="law-draft", letters="abcdefgh", n_layers=1, n_embd=32, n_heads=2, n_ff=32, n_ctx=256, scale=0.45,
    noise=0.7, noise_seed=5,
)  # fmt: skip
OTHER = replace(OWN, name="law-other", order=5)
"""A draft with the target's vocabulary, and one with another."""

WARM = Sampling(temperature=1.0)
HOT = Sampling(temperature=1.6)
CUT = Sampling(temperature=0.7, top_k=6, top_p=0.9, min_p=0.05)
PENALISED = Sampling(temperature=0.9, top_k=9, repeat_penalty=1.5, repeat_last_n=8)

ADDED = Sampling(
    temperature=1.2, frequency_penalty=0.3, presence_penalty=0.2, repeat_last_n=8, xtc_probability=0.5,
    xtc_threshold=0.15,
)  # fmt: skip
TYPICAL = Sampling(temperature=1.0, top_n_sigma=2.5, typical_p=0.85)
DRY = Sampling(
    temperature=1.0,
    dry_multiplier=1.5,
    dry_allowed_length=1,
    dry_penalty_last_n=-1,
    dry_sequence_breaker="g ef",
)

ECHO = "law-echo"


@dataclass(frozen=True)
class Case:
    """A way of drafting and sampling whose law is measured."""

    strategy: str
    sampling: Sampling = field(default_factory=lambda: WARM)
    max_tokens: int = 8  # more than LENGTH, so that long drafts have room
    draft: Tiny = OWN
    prompt: str = PROMPT

    @override
    def __str__(self) -> str:
        settings = [
            f"{name}={getattr(self.sampling, name)}"
            for name in self.sampling.__dataclass_fields__
            if getattr(self.sampling, name) != getattr(WARM, name)
        ]
        text = ["through text"] if self.draft is OTHER else []
        text += ["lattice"] if self.draft.selector else []
        return " ".join([self.strategy, *settings, f"max={self.max_tokens}", *text])


CASES = [
    Case("draft-simple:n_max=3"),
    Case("draft-simple:n_max=3", CUT),
    Case("draft-simple:n_max=2:p_min=0.3", PENALISED),
    Case("draft-simple:n_max=3:sample=1"),
    Case("draft-simple:n_max=3:sample=1", CUT),
    Case("draft-simple:n_max=3:sample=1", PENALISED),
    Case("prompt-lookup:num_pred_tokens=3"),
    Case("prompt-lookup:num_pred_tokens=2+draft-simple:n_max=2:sample=1", CUT),
    Case("draft-simple:n_max=3:verify=block"),
    Case("draft-simple:n_max=3:sample=1:verify=block"),
    Case("draft-simple:n_max=3:sample=1:verify=block", CUT),
    Case("draft-simple:n_max=3:sample=1:verify=block", PENALISED),
]
"""Both rules that keep the law, one-hot and sampled drafts, with what changes p and q."""


def _head(architecture: str, *, markov: bool = False, selector: bool = False) -> Tiny:
    """A head for the target, which has one layer."""
    return replace(
        OWN, name="law-head", architecture=architecture, reads=(0, 0), markov=markov, selector=selector
    )


LENGTH_CASES = [
    Case("draft-simple:n_max=1:sample=1", max_tokens=3),
    Case("draft-simple:n_max=2:sample=1", HOT, max_tokens=3),
    Case("draft-simple:n_max=3:sample=1:p_min=0.3"),
    Case("draft-simple:n_max=3:sample=1:length=ewma"),
    Case("draft-simple:n_max=3:sample=1:length=ewma", CUT),
    Case("draft-simple:n_max=3:sample=1:length=auto", max_tokens=100),
    Case("prompt-lookup:num_pred_tokens=3", PENALISED),
    Case("draft-simple:n_max=3:verify=block", CUT),
    Case("draft-simple:n_max=2:sample=1:verify=block", HOT),
    Case("draft-simple:n_max=3:sample=1:p_min=0.3:verify=block"),
    Case("prompt-lookup:num_pred_tokens=2+draft-simple:n_max=3:sample=1:verify=block"),
    *(
        Case(f"draft-simple:n_max=3{kind}", sampling)
        for sampling in (ADDED, TYPICAL, DRY)
        for kind in (":sample=1", ":sample=1:verify=block")
    ),
]
"""The same with drafts of other lengths, of lengths that follow what was accepted, and with rarer filters."""

STRATEGY_CASES = [
    Case(f"{strategy}:verify={rule}", sampling, draft=draft)
    for strategy, sampling, draft in (
        ("suffix:n_max=3:max_spec_offset=3", WARM, OWN),
        ("ngram-simple:size_n=2:size_m=3", WARM, OWN),
        ("ngram-map-k:size_n=1:size_m=3", HOT, OWN),
        ("ngram-map-k4v:size_n=1:size_m=3", WARM, OWN),
        ("ngram-mod:n_match=2:n_min=0:n_max=3", HOT, OWN),
        ("ngram-cache:n_draft=3", WARM, OWN),
        ("draft-simple:n_max=3", CUT, OTHER),
        (f"{ECHO}:n_max=2", WARM, OWN),
    )
    for rule in ("speculative", "block", "match")
]
"""Every other strategy, through text and from outside too. They propose one-hot drafts like those above, so
fewer draws are enough to see that a proposal does not know more than it may."""

HEAD_CASES = [
    Case(f"{strategy}:n_max=3:sample=1{rule}", draft=draft)
    for strategy, draft in (
        ("draft-eagle3", _head("eagle3")),
        ("draft-dflash", _head("dflash")),
        ("draft-dflash", _head("dflash", selector=True)),
        ("draft-dspark", _head("dflash", markov=True)),
    )
    for rule in ("", ":verify=block")
]
"""Heads that draw: of a block each place has its own q, of a lattice one that depends on the token before."""

PLAIN_CASES = [
    Case("none", CUT),
    Case("draft-simple:n_max=2:verify=match", CUT),
    Case("draft-simple:n_max=3:sample=1:verify=match", HOT),
    Case("prompt-lookup+draft-simple:n_max=3:sample=1:length=auto", max_tokens=2000),
]
"""Nothing is accepted by chance here, or only as often as time allows; a slice of draws is enough."""


def open_engine(target: Path, draft: Path) -> Engine:
    """An engine with caches in single precision: batch shapes then differ by a millionth at most."""

    def single(path: Path) -> ModelOptions:
        return ModelOptions(
            str(path), ctx_size=256, cache_type_k="f32", cache_type_v="f32", flash_attn="off", threads=1
        )

    return Engine(single(target), single(draft))


BUNDLED_CASES = [
    Case(f"draft-simple:n_max=4{kind}", prompt="There once was a ")
    for kind in (":sample=1", ":sample=1:verify=block", "", ":verify=block")
]
"""The bundled pair at temperature 1, where a story could be about anything."""

REAL_CASES = [
    Case(strategy, Sampling(temperature=0.9, top_k=20), prompt="A fox, a bear, a fox, a bear, a fox, a")
    for strategy in (
        "prompt-lookup:num_pred_tokens=3", "suffix:n_max=3:verify=block", "draft-simple:n_max=3"
    )
]  # fmt: skip
"""SmolLM2 and the bundled pair's draft, through text."""


def prompt_ids(engine: Engine, prompt: str = PROMPT) -> NDArray[np.int32]:
    return engine.target.model.vocabulary.tokenize(prompt, special=True, parse_special=False)


def exact_law(engine: Engine, sampling: Sampling) -> NDArray[np.float64]:
    """The joint law of the target's first LENGTH tokens, shape [vocabulary] * LENGTH."""
    prompt = prompt_ids(engine)
    context = engine.target
    size = context.model.vocabulary.size
    law = np.zeros((size,) * LENGTH)
    context.clear()
    words = sampling.dry_sequence_breaker.split()
    letters = context.model.vocabulary.tokenize
    breakers = [letters(word, special=False, parse_special=False).tolist() for word in words]

    def row(prefix: tuple[int, ...]) -> NDArray[np.float64]:
        ids = np.concatenate([prompt, np.array(prefix, np.int32)])
        kept = context.sync(ids[:-1])
        row = context.decode(ids[kept:], logits=1)[0]
        return probabilities(row, sampling, ids.tolist(), breakers=breakers)

    first = row(())
    for a in map(int, np.flatnonzero(first)):
        second = row((a,))
        for b in map(int, np.flatnonzero(second)):
            law[a, b] = first[a] * second[b] * row((a, b))
    return law


Likely = dict[tuple[int, ...], float]
"""Beginnings of answers and their probabilities."""


def likely_law(engine: Engine, case: Case, least: float) -> Likely:
    """The first one to LENGTH tokens that are at least so likely together, for a target of many tokens."""
    prompt = prompt_ids(engine, case.prompt)
    context = engine.target
    context.clear()
    law: Likely = {(): 1.0}
    found = {}
    for _ in range(LENGTH):
        longer: Likely = {}
        for prefix, chance in law.items():
            ids = np.concatenate([prompt, np.array(prefix, np.int32)])
            kept = context.sync(ids[:-1])
            row = chance * probabilities(context.decode(ids[kept:], logits=1)[0], case.sampling, ids.tolist())
            longer |= {(*prefix, token): float(row[token]) for token in np.flatnonzero(row >= least).tolist()}
        found |= longer
        law = longer
    return found


def likely_p_values(answers: Counter[tuple[int, ...]], law: Likely) -> list[float]:
    """The p-values of the laws of one, two and three tokens, each with one cell for all that is rarer."""
    total = answers.total()
    values = []
    for length in range(1, LENGTH + 1):
        seen: Counter[tuple[int, ...]] = Counter()
        for tokens, times in answers.items():
            seen[tokens[:length]] += times
        cells = {prefix: chance for prefix, chance in law.items() if len(prefix) == length}
        counts = np.array([seen[prefix] for prefix in cells])
        chances = np.array(list(cells.values()))
        counts = np.append(counts, total - counts.sum())
        chances = np.append(chances, max(0.0, 1.0 - chances.sum()))
        values.append(_p_value(counts, chances))
    return values


@dataclass(frozen=True, slots=True)
class EchoParams:
    n_max: int = param(4, "Draft at most this many tokens a round.", low=1, high=64, unit="tokens")


class Echo(Drafter):
    """A plug-in drafter: proposes what followed the last token before, else that token again."""

    def __init__(self, params: EchoParams, _resources: Resources) -> None:
        self._n_max = params.n_max

    @override
    def propose(self, context: NDArray[np.int32], k: int) -> Proposal:
        last = int(context[-1])
        places = np.flatnonzero(context[:-1] == last)
        start = int(places[-1]) + 1 if len(places) else len(context) - 1
        return Proposal(context[start : start + min(k, self._n_max)].tolist())


@contextmanager
def echo_known() -> Iterator[None]:
    """Register the plug-in strategy within the block."""
    register(StrategyKind(ECHO, EchoParams, "Repeats.", make=Echo))
    try:
        yield
    finally:
        unregister(ECHO)


class PaidAuto(AutoLength):
    """`length=auto` where drafting pays: it observes the times of a large target. With those of these models
    it would rest."""

    @override
    def observe(self, cost: RoundCost) -> None:
        attempts = [
            msgspec.structs.replace(
                attempt, seconds=0.05 * len(attempt.ids), read_seconds=0.01 * attempt.unread
            )
            for attempt in cost.attempts
        ]
        drafted = 0.05 * sum(len(attempt.ids) for attempt in attempts)
        super().observe(
            msgspec.structs.replace(cost, attempts=attempts, draft_seconds=drafted, target_seconds=1.0)
        )


class Beginning(Handover[Verified]):
    """Runs the loop in this thread until LENGTH tokens are there. A round is recorded where `seen` asks for
    it: most of these answers are only counted."""

    def __init__(self, run: Generation, seen: list[Round] | None) -> None:
        super().__init__(run.thread, lambda _handover: None)
        self._run_of_loop, self._seen = run, seen
        with suppress(ConsumerLeft):
            verify_rounds(run, self)

    @override
    def put(self, verified: Verified) -> None:
        if self._seen is not None:
            self._seen.append(finished(self._run_of_loop, verified)[0])
        if self._run_of_loop.position >= LENGTH:
            raise ConsumerLeft


def emitted(
    engine: Engine, case: Case, n: int, seed: int, first: int = 0, seen: list[Round] | None = None
) -> Iterator[tuple[int, ...]]:
    """Yield the first LENGTH tokens of `n` answers from number `first` on, each with its own draws."""
    with echo_known():
        yield from _emitted(engine, case, n, seed, first, seen)


def _emitted(
    engine: Engine, case: Case, n: int, seed: int, first: int, seen: list[Round] | None
) -> Iterator[tuple[int, ...]]:
    spec = StrategySpec.parse(case.strategy)
    vocabulary = engine.target.model.vocabulary
    sampler = Sampler(case.sampling, breakers=breakers_of(vocabulary, case.sampling))
    prompt = prompt_ids(engine, case.prompt)
    drafters = engine.warm.of(spec)
    length = PaidAuto() if spec.length.by_clock else spec.length.make()
    outset = Outset(
        [StrategyLimits(part.name, part.shortest, part.longest) for part in spec.parts], case.max_tokens
    )
    for number in range(first, first + n):
        for name, drafter in drafters:
            if name.startswith(
                "ngram-map"
            ):  # it does not propose again what once failed: soon it would propose nothing
                drafter.reset()
        length.begin(outset)
        run = Generation(
            target=engine.target,
            drafters=drafters,
            draft_contexts=[engine.draft] if engine.draft else [],
            rule=spec.verification_at(case.sampling.temperature),
            length=length,
            sampler=sampler,
            draws=Draws(seed * 1_000_000 + number),
            truth=TokenBuffer(prompt, len(prompt) + case.max_tokens + 1),
            prompt_length=len(prompt),
            max_tokens=case.max_tokens,
            end_ids=frozenset(),  # every token counts alike
            text=TextStream(),
            thread=engine.thread,
        )
        around = RunContext(
            sampler, run.draws, run.prompt_length, run.end_ids, shares_luck=run.rule.shares_luck
        )
        for _name, drafter in drafters:
            drafter.begin(run.truth.ids, around)
        if isinstance(engine.draft, HeadContext):
            engine.draft.follow(prompt[:-1])
            for _ in engine.target.read(prompt[:-1]):
                pass
        Beginning(run, seen)
        yield tuple(run.truth.ids[len(prompt) : len(prompt) + LENGTH].tolist())


def count(
    engine: Engine, case: Case, n: int, seed: int, first: int = 0, seen: list[Round] | None = None
) -> NDArray[np.int64]:
    """Count the answers by their first LENGTH tokens, shape [vocabulary] * LENGTH; `seen` takes the
    rounds."""
    size = engine.target.model.vocabulary.size
    counts = np.zeros((size,) * LENGTH, np.int64)
    for tokens in emitted(engine, case, n, seed, first, seen):
        counts[tokens] += 1
    return counts


_engines: dict[tuple[Path, Path], Engine] = {}


def count_elsewhere(files: tuple[Path, Path], case: Case, n: int, seed: int, first: int) -> NDArray[np.int64]:
    """`count` in a worker process, which keeps its engine for the next call."""
    return count(_engine_of(files), case, n, seed, first)


def emitted_elsewhere(
    files: tuple[Path, Path], case: Case, n: int, seed: int, first: int
) -> Counter[tuple[int, ...]]:
    """How often each beginning was emitted in a worker process."""
    return Counter(emitted(_engine_of(files), case, n, seed, first))


def _engine_of(files: tuple[Path, Path]) -> Engine:
    if files not in _engines:
        _engines[files] = open_engine(*files)
    return _engines[files]


def p_values(counts: NDArray[np.int64], law: NDArray[np.float64]) -> list[float]:
    """The p-values of the laws of one, two and three tokens; 0 if something impossible was emitted."""
    values = []
    for length in range(1, LENGTH + 1):
        rest = tuple(range(length, LENGTH))
        values.append(_p_value(counts.sum(axis=rest).ravel(), law.sum(axis=rest).ravel()))
    return values


def _p_value(counts: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    if counts[law == 0].any():
        return 0.0
    order = np.argsort(law)[np.count_nonzero(law == 0) :]
    expected, seen = law[order] * counts.sum(), counts[order]
    # The rarest cells are pooled until each is expected often enough.
    starts, waiting = [0], 0.0
    for place, value in enumerate(expected):
        if waiting >= SMALL:
            starts.append(place)
            waiting = 0.0
        waiting += value
    if waiting < SMALL and len(starts) > 1:
        starts.pop()
    pooled_seen, pooled_expected = np.add.reduceat(seen, starts), np.add.reduceat(expected, starts)
    if len(starts) < 2:
        return 1.0
    pooled_expected *= pooled_seen.sum() / pooled_expected.sum()
    return float(stats.chisquare(pooled_seen, pooled_expected).pvalue)


def holds(values: list[float], cases: int) -> bool:
    """Whether these p-values are acceptable: a correct engine fails less than once in 1 / FALSE_ALARM runs.

    `cases` is how many counts are judged in the run, each in LENGTH ways (Bonferroni's correction).
    """
    return min(values) > FALSE_ALARM / (cases * LENGTH)
