"""A simulated pair: times from a cost model, acceptance from a list or by chance. No model, no clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.engine.lengths.base import Attempt, DraftLength, FixedLength, Outset, RoundCost, StrategyLimits
from app.engine.process.messages import PassSeconds

NAME = "draft"
WRONG = -1  # a token that the target never writes; it writes 0, 1, 2, ...


@dataclass(frozen=True)
class Pair:
    """The simulated costs, in target passes over one token."""

    v: Callable[[int], float]  # of a pass over k drafted tokens and one more
    c: float  # of a drafted token
    read: float = 0.0  # of a token that the draft model reads
    prompt: float = 0.0  # of a token that the target reads
    relative_size: float = 0.1
    prompt_tokens: int = 40
    noise: float = 0.0  # relative standard deviation of a time
    outliers: float = 0.0  # share of times that are several times as long
    busy: float = 0.0  # how much longer everything takes while the machine is busy
    seconds: float = 0.01  # of a pass over one token
    hit: float = 1.0  # share of rounds with a draft
    switch: float = 0.0  # how much longer a pass takes whose number of tokens changed


@dataclass
class Run:
    """The result of a simulated answer."""

    seconds: float = 0.0
    tokens: int = 0
    lengths: list[int] = field(default_factory=list)  # drafted tokens per round
    places: list[int] = field(default_factory=list)  # where each round began


def simulate(
    length: DraftLength,
    pair: Pair,
    runs: Sequence[int],
    longest: int = 12,
    seed: int = 0,
    passes: PassSeconds | None = None,
    wanted: int = 0,
) -> Run:
    """Write `len(runs)` tokens of at most `wanted`; a draft made at place i agrees with the target for
    `runs[i]` tokens."""
    chance = random.Random(seed)
    busy = [seed % 2 == 1]

    def lasts(share: float) -> float:
        if pair.noise:
            share *= max(0.5, chance.gauss(1, pair.noise))
        share *= 1 + pair.busy * busy[0]
        if pair.busy and chance.random() < 0.02 * share:  # of 50 passes on average
            busy[0] = not busy[0]
        if pair.outliers and chance.random() < pair.outliers:
            share *= chance.uniform(2, 6)
        return share * pair.seconds

    total = len(runs)
    limits = StrategyLimits(NAME, 1, longest, pair.relative_size)
    reading = lasts(pair.prompt * pair.prompt_tokens or 1.0)
    length.begin(Outset([limits], wanted or total, pair.prompt_tokens, reading, passes))
    out, read, before = Run(), 0, 0
    if not length.lazy:
        out.seconds += lasts(pair.read * pair.prompt_tokens)
        read = pair.prompt_tokens
    while out.tokens < total:
        place = out.tokens
        room = total - place - 1
        unread = pair.prompt_tokens + place - 1 - read
        asked = room > 0 and not length.sit_out(np.arange(place, dtype=np.int32))
        k, looked = length.choose(NAME, room, lambda unread=unread: unread) if asked else 0, False  # type: ignore[misc]
        if asked and not k:
            k = length.look(NAME, room)
            looked = k > 0
        there = chance.random() < pair.hit
        k = min(k, longest)
        attempts, agrees = [], 0
        if k:
            size = k if there else 0
            agrees = min(runs[place], size)
            ids = [place + at if at < agrees else WRONG for at in range(size)]
            first = lasts(pair.read * unread) if unread > 8 else 0.0
            extra = pair.read * unread if unread <= 8 else 0.0
            attempts.append(Attempt(NAME, k, ids, unread, first, lasts(size * pair.c + extra), looked))
            read = pair.prompt_tokens + place + agrees
        drafted = 0 if looked or not k else len(attempts[0].ids)
        accepted = agrees if drafted else 0
        emitted = range(place, min(place + accepted + 1, total))
        draft_seconds = sum(attempt.seconds + attempt.read_seconds for attempt in attempts)
        target_seconds = lasts(pair.v(drafted) + pair.switch * (drafted != before))
        before = drafted
        if asked:
            length.observe(RoundCost(attempts, accepted, emitted, draft_seconds, target_seconds))
        out.seconds += draft_seconds + target_seconds
        out.tokens += len(emitted)
        out.lengths.append(drafted)
        out.places.append(place)
    return out


def by_chance(alpha: float, tokens: int, seed: int = 0) -> list[int]:
    """How many tokens of each draft agree, if every token passes with the same chance."""
    chance = random.Random(f"{alpha} {seed}")
    right = [chance.random() < alpha for _ in range(tokens)]
    runs, run = [0] * tokens, 0
    for at in reversed(range(tokens)):
        run = run + 1 if right[at] else 0
        runs[at] = run
    return runs


def best_fixed(pair: Pair, runs: Sequence[int], longest: int = 12) -> tuple[int, float]:
    """The fastest fixed k, possibly 0, and its time."""
    times = [(simulate(FixedLength(), pair, runs, k).seconds, k) for k in range(1, longest + 1)]
    seconds, k = min([(baseline(pair, len(runs)), 0), *times])
    return k, seconds


def baseline(pair: Pair, tokens: int) -> float:
    """Seconds of so many tokens without drafts, free of noise."""
    return tokens * pair.v(0) * pair.seconds
