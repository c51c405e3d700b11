"""Answers made up with a fixed seed, with the times and probabilities of a real pair."""

from __future__ import annotations

import random

from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from app.engine.fates import Origin, Verdict
from app.engine.record.trace import FORMAT, Trace
from app.engine.types import (
    DraftedToken,
    Draw,
    EmittedToken,
    FinishReason,
    ModelInfo,
    PairInfo,
    Round,
    Sampling,
    Totals,
    TraceHeader,
)
from app.saved.measured import Measurement
from app.ui.instruments import InstrumentsPanel
from app.ui.state.answer import AnswerModel

WORDS = (
    " the", " values", "(", "):", "\n", "    ", "return", " sum", " average", " of", " list",
    " arithmetic", " mean", " not", " empty", " sequence", ".", ",", " and", " is", "é", "_count",
)  # fmt: skip
MODEL = ModelInfo(
    "demo.gguf", "demo 32M", "llama", "Q8_0", 34_000_000, 32_000_000, 8, 8192, 4096, 4096, 1, True
)


def header(strategy: str = "draft-simple:n_max=4", *, sampled: bool = False) -> TraceHeader:
    verification = "speculative" if sampled else "greedy"
    return TraceHeader(
        FORMAT, "0.1.0", strategy, verification, Sampling(), 7, 512, PairInfo(MODEL, MODEL),
        "Hello", 5, 0, True, "2025-01-01T00:00:00Z",
    )  # fmt: skip


def totals(rounds: list[Round], reason: FinishReason = FinishReason.END) -> Totals:
    seconds = rounds[-1].offset + rounds[-1].seconds if rounds else 0.0
    return Totals(reason, "text", seconds, 0.021, 0.004, 0.03)


def answer(
    rounds: int, *, k: int = 4, alpha: float = 0.86, seed: int = 3, sampled: bool = False
) -> list[Round]:
    """`rounds` rounds of at most `k` drafted tokens; each judged token is accepted with probability about
    `alpha`."""
    luck = random.Random(seed)
    made: list[Round] = []
    offset = position = 0.0
    for index in range(rounds):
        # Real answers have easy and hard stretches, and drafts that p_min cuts short.
        chance = min(max(alpha + 0.1 * (1 if index // 9 % 2 else -1), 0), 1)
        length = k if luck.random() < 0.8 else luck.randint(0, k)
        accepted = 0
        while accepted < length and luck.random() < chance:
            accepted += 1
        round = _round(luck, index, int(position), k, length, accepted, sampled)
        made.append(replace_offset(round, offset))
        offset += round.seconds + luck.uniform(0.00005, 0.0002)
        position += len(round.emitted)
    return made


def replace_offset(round: Round, offset: float) -> Round:
    fields = {name: getattr(round, name) for name in round.__struct_fields__}
    return Round(**{**fields, "offset": offset})


def trace(rounds: int, strategy: str = "draft-simple:n_max=4", **how: object) -> Trace:
    made = answer(rounds, **how)  # type: ignore[arg-type]
    return Trace(header(strategy), made, totals(made))


def begin(panel: InstrumentsPanel, head: TraceHeader) -> AnswerModel:
    """Begin another answer."""
    model = AnswerModel(live=True)
    panel.set_answer(model)
    model.begin(head)
    return model


def show(panel: InstrumentsPanel, whole: Trace) -> AnswerModel:
    """Show a finished answer, laid out."""
    model = AnswerModel(whole)
    panel.set_answer(model)
    for _ in range(3):
        QApplication.processEvents()
    return model


def measurement(speed_up: float = 2.0, rounds: int = 60) -> Measurement:
    """A measurement of an answer of so many rounds: a token every 10 ms without drafts, and `speed_up` times
    as fast with them."""

    def even(made: list[Round], seconds: float) -> list[Round]:
        """The rounds with so many seconds per token."""
        offset, timed = 0.0, []
        for round in made:
            timed.append(replace(round, offset=offset, seconds=seconds * len(round.emitted)))
            offset += timed[-1].seconds
        return timed

    drafted = answer(rounds)
    tokens = sum(len(round.emitted) for round in drafted)
    plain, fast = even(answer(tokens, k=0), 0.01), even(drafted, 0.01 / speed_up)
    return Measurement(Trace(header("none"), plain, totals(plain)), Trace(header(), fast, totals(fast)))


def _round(
    luck: random.Random, index: int, position: int, k: int, length: int, accepted: int, sampled: bool
) -> Round:
    drafted, emitted = [], []
    for place in range(length):
        word = luck.choice(WORDS).encode()
        verdict = Verdict.ACCEPTED
        if place >= accepted:
            verdict = Verdict.REJECTED if place == accepted else Verdict.IGNORED
        draft_p = luck.betavariate(6, 1.2)
        p: float | None = luck.betavariate(8, 1) if place < accepted else luck.betavariate(1, 6)
        if verdict is Verdict.IGNORED:
            p = None
        q = draft_p if sampled else 1.0
        u = None if p is None or not sampled else luck.random()
        drafted.append(DraftedToken(7, word, verdict, q, draft_p, p, u, 7 if not sampled else None))
        if verdict is Verdict.ACCEPTED:
            assert p is not None
            emitted.append(EmittedToken(7, word, Origin.ACCEPTED, p))
    origin = Origin.PLAIN
    if length:
        origin = Origin.RESAMPLED if accepted < length else Origin.BONUS
    draw = Draw(0.4312, 0.21, 0.934) if sampled else None
    word = luck.choice(WORDS).encode()
    emitted.append(EmittedToken(9, word, origin, luck.betavariate(5, 1.5), draw))
    draft = 0.00028 * length * luck.uniform(0.9, 1.2) + (0.00002 if k else 0)
    verify = 0.0066 + 0.0031 * length * luck.uniform(0.95, 1.15)
    sample = 0.00025
    end = "" if not k else "n_max" if length == k else "p_min"
    return Round(
        index=index, position=position, offset=0.0, seconds=draft + verify + sample,
        draft_seconds=draft, verify_seconds=verify, sample_seconds=sample,
        native_seconds=(draft + verify) * 0.985, drafted=tuple(drafted), emitted=tuple(emitted),
        strategy="draft-simple" if length else None, draft_end=end,
    )  # fmt: skip
