"""The table of measured settings: its cases, prompts and rows, and their replay.

At temperature 0 every strategy gives the same text. So three things give the rounds and the time of every
setting: the text, how far the draft model agrees at each position, and the times of passes. Measured settings
show how accurate that is. `measure.py` makes the table, `score.py` reads it.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from typing_extensions import override

from app.demo import REAL_PAIR
from app.engine.drafters.base import Drafter, Proposal, Resources, RunContext
from app.engine.drafters.lookup_caches import LookupCaches
from app.engine.drafters.registry import KINDS
from app.engine.explain.walk import THOUGHT
from app.engine.forcing import WIDTHS
from app.engine.lengths.auto import MEASURES
from app.engine.lengths.base import Outset, RoundCost, StrategyLimits
from app.engine.loop.propose import Budget, propose
from app.engine.process.messages import PassSeconds
from app.engine.strategy import StrategySpec
from app.lab.tune.search import families

TABLE = Path(__file__).with_name("table.jsonl")
TABLES = (TABLE, Path(__file__).with_name("table-2026-11-26.jsonl"))
"""Settings were tuned on the first; the second is of another day and another processor."""
CALIBRATIONS = Path(__file__).with_name("calibrations.jsonl")
"""Passes of other widths than the answers of a table had, timed on its machine later."""
FORMAT = "1"
DEPTH = 16  # tokens of the draft that is recorded at every place
NONE = "none"
_FAR_MORE = 4
_WRONG = -1  # a token that the target never writes
MADE_UP = 1 << 17  # from here on the ids of a text are made up: nothing in it can be copied
_priced: dict[tuple[object, ...], Priced] = {}
_replays: dict[tuple[object, ...], Replay] = {}

_BRIDGE = (
    "The old bridge was closed on Monday because of the flood. The town will repair it in the spring, and "
    "until then a ferry takes people across. The mayor said that the ferry is free for everybody who lives "
    "in the town."
)
_CLASS = """class Account:
    def __init__(self, owner, total):
        self.owner = owner
        self.total = total

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.total += amount
        return self.total

    def withdraw(self, amount):
        if amount > self.total:
            raise ValueError("not enough money")
        self.total -= amount
        return self.total
"""
_LOG = "".join(
    f"2026-03-02 07:{minute:02}:12 {level} {service} {text}\n"
    for minute, (level, service, text) in enumerate(
        (
            ("INFO", "gateway", "started on port 8080"),
            ("WARN", "cache", "memory at 81 percent"),
            ("ERROR", "billing", "connection to the database lost"),
            ("INFO", "billing", "connection to the database restored"),
            ("ERROR", "mailer", "no route to the host mail.example.org"),
        )
        * 5
    )
)
PROMPTS: Mapping[str, str] = {
    "talk": "What is the difference between a river and a lake? Explain it to a friend.",
    "story": "Tell me a short story about a fox and a lantern.",
    "list": "List ten things to take along on a walk in the mountains, with a reason for each.",
    "rewrite": f"Rewrite this text, but change Monday to Friday:\n\n{_BRIDGE}",
    "quote": f"Repeat the following text word for word:\n\n{_BRIDGE}",
    "code": f"Print this class again, and rename `total` to `balance`:\n\n```python\n{_CLASS}```",
    "json": 'Write these people as a JSON list of objects with the keys "name", "age" and "city":\n\n'
    "Maria Lopez, 34, Lisbon; Jan Novak, 51, Prague; Ana Silva, 28, Porto; Per Olsen, 45, Bergen.",
    "long": f"Here are a log, a text and a class.\n\n{_LOG}\n{_BRIDGE}\n\n```python\n{_CLASS}```\n\n"
    "Print all lines of the log that have the word ERROR.",
}
"""One prompt of each kind."""


class Case(NamedTuple):
    """A pair of files and its threads. A file is a name: `model` in measure.py finds it."""

    name: str
    target: str
    draft: str = ""
    threads: int = 1
    depth: int = DEPTH  # fewer where the draft is as large as its target
    chat: bool = True


CASES = (
    Case("smollm2-q4_1", "Q4_1"),
    Case("bundled", "bundled:target.gguf", "bundled:draft.gguf"),
    Case("smollm2-f16", "F16"),
    Case("smollm2-q4_1-text", "Q4_1", "bundled:draft.gguf", depth=8),
    Case("bundled-2", "bundled:target.gguf", "bundled:draft.gguf", threads=2),
    Case("smollm2-q4_1-2", "Q4_1", threads=2),
    Case("smollm2-q4_0", "Q4_0"),
    Case("bundled-small", "bundled:target.gguf", "bundled:small-draft.gguf"),
    Case("smollm2-f16-q4_0", "F16", "Q4_0", depth=4),
    Case("smollm2-f16-2", "F16", threads=2),
    Case("gemma", "gemma", chat=False),
)
"""The most telling first: a run that ends early has measured these."""


def settings(case: Case) -> tuple[str, ...]:
    """All settings that are measured: Tune's, and the first of each strategy with length=auto."""
    found = families(has_draft=bool(case.draft))
    auto = [f"{family.settings[0]}:length=auto" for family in found if "length=" not in family.settings[0]]
    every = (spec for family in found for spec in family.settings)
    first = StrategySpec.parse(REAL_PAIR.strategy).without_draft()
    return tuple(dict.fromkeys([str(StrategySpec.parse(spec)) for spec in (*every, *auto)] + [str(first)]))


@cache
def spelled(spec: str) -> str:
    """A setting in one spelling."""
    return str(StrategySpec.parse(spec))


class Measured(msgspec.Struct, omit_defaults=True):
    """A setting's answer, relative to the baseline's answers before and after it."""

    factor: float
    cpu: float  # the same of processor time
    rounds: dict[str, int]  # how many, by "drafted/accepted"
    draft_ms: float = 0.0  # of all rounds
    parted: bool = False  # its text is not the baseline's: a near-tie


class Priced(NamedTuple):
    """What a setting comes to on a prompt."""

    factor: float
    drafted: int  # tokens
    accepted: int


class Row(msgspec.Struct):
    """All that is known of a prompt in a case."""

    case: str
    prompt: str
    threads: int
    prompt_ids: list[int]
    answer_ids: list[int]
    prompt_ms: float  # of a token of the prompt
    plain_ms: float  # a token of the baseline
    plain_spread: float  # the largest baseline / the smallest
    passes: dict[int, tuple[float, int]]  # ms by tokens of the pass, and how often it was timed
    drafts: dict[int, float]  # ms of the draft model by tokens drafted
    reach: list[list[float]]
    """At each place of the answer: how many tokens of a draft agree, then the draft model's p of each."""
    settings: dict[str, Measured]
    same: dict[str, str]  # settings with the very rounds of a measured one
    max_tokens: int = 64  # a draft may be longer than what was left of the answer
    auto: str = (
        ""  # the date when length=auto was measured as it is; "": an earlier rule was, and is not read
    )

    timed: dict[int, float] = {}  # ms of passes by their tokens, of `CALIBRATIONS`

    @property
    def has_p(self) -> bool:
        """Whether the draft model's own probabilities are known: through text they are not."""
        return any(p < 1 for _agreed, *place in self.reach for p in place)

    def factor(self, spec: str) -> float:
        """The speed-up of a setting: measured, or that of one with the same rounds, or replayed."""
        spec = spelled(spec)
        found = self.settings.get(self.same.get(spec, spec))
        return 1.0 if spec == NONE else self.of(found) if found is not None else self.settled(spec)

    def of(self, measured: Measured) -> float:
        """Of one thread the ratio of processor times, which other work disturbs less."""
        return measured.cpu if self.threads == 1 else measured.factor

    def settled(self, spec: str) -> float:
        """The speed-up of `priced`."""
        return self.priced(spec).factor

    def priced(self, spec: str) -> Priced:
        """What a setting comes to by its rounds, measured or else replayed, and the median times of such
        passes and drafts in all answers, so that a disturbance of one answer does not count."""
        spec = spelled(spec)
        key = self.case, self.prompt, self.plain_ms, spec
        if key not in _priced:
            _priced[key] = self._price(spec, self.settings.get(self.same.get(spec, spec)))
        return _priced[key]

    def _price(self, spec: str, found: Measured | None) -> Priced:
        if spec == NONE:
            return Priced(1.0, 0, 0)
        if found is None or not found.parted:
            timed = StrategySpec.parse(spec).length.by_clock
            replayed = replay(self, spec, passes=passes_of(self) if timed else None)
            if found is None or found.rounds == Counter(f"{k}/{passed}" for k, passed in replayed.rounds):
                return Priced(replayed.factor, *map(sum, zip(*replayed.rounds, strict=True)))
        counted = [(*map(int, round.split("/")), times) for round, times in found.rounds.items()]
        ms = found.draft_ms + sum(times * pass_time(self, size + 1) for size, _, times in counted)
        accepted = sum(times * passed for _, passed, times in counted)
        # What parted has another text, of as many tokens or fewer.
        tokens = min(accepted + sum(found.rounds.values()), self.max_tokens)
        return Priced(tokens * self.plain_ms / ms, sum(times * size for size, _, times in counted), accepted)

    def best(self, by: Callable[[Row, str], float]) -> tuple[str, float]:
        """The best of the measured settings and none, and its speed-up, by `Row.factor` or `Row.settled`."""
        return max(((spec, by(self, spec)) for spec in (NONE, *self.settings)), key=lambda item: item[1])


class Head(msgspec.Struct):
    """The first line."""

    format: str
    machine: str
    date: str
    tokens: int


class Calibration(msgspec.Struct):
    """Times of a case's passes, after a prompt of some hundred tokens."""

    table: str
    target: str
    threads: int
    machine: str
    date: str
    library: str
    ms: dict[int, float]  # by tokens


class Measurements(NamedTuple):
    head: Head
    rows: list[Row]


def read(path: Path = TABLE) -> Measurements:
    """Read a table; a last line that was cut is an error."""
    head, *rows = path.read_bytes().splitlines()
    found = Measurements(
        msgspec.json.decode(head, type=Head), [msgspec.json.decode(row, type=Row) for row in rows]
    )
    lines = CALIBRATIONS.read_bytes().splitlines()
    calibrations = (msgspec.json.decode(line, type=Calibration) for line in lines)
    timed = {(each.target, each.threads): each.ms for each in calibrations if each.table == path.name}
    files = {case.name: (case.target, case.threads) for case in CASES}
    for row in found.rows:
        row.max_tokens = found.head.tokens
        row.timed = timed.get(files[row.case], {})
        if not row.auto:
            row.settings = {spec: each for spec, each in row.settings.items() if "length=auto" not in spec}
        row.passes = _undisturbed(row.passes)
        row.drafts = {
            k: ms for k, (ms, _) in _undisturbed({k: (ms, 1) for k, ms in row.drafts.items()}).items()
        }
        if any(len(place) == 1 for place in row.reach):
            _through_text(row)
    return found


def _undisturbed(times: Mapping[int, tuple[float, int]]) -> dict[int, tuple[float, int]]:
    """Without sizes that took longer than a larger one that was timed as often, or less than a smaller one
    that was timed far more often: if only few answers have passes of a size, a disturbance, or a quiet
    moment of a busy machine, may have reached all of them."""
    return {
        size: (ms, count)
        for size, (ms, count) in times.items()
        if not any(
            (other > size and taken < ms and often >= count)
            or (other < size and taken > ms and often >= _FAR_MORE * count)
            for other, (taken, often) in times.items()
        )
    }


def _through_text(row: Row) -> None:
    """Through text, p of a drafted token is not known and p_min ends no draft. The two first tables have no
    p at all then, from which `same` was told as if nothing were drafted."""
    (depth,) = (case.depth for case in CASES if case.name == row.case)
    row.reach = [[agreed, *[1.0] * depth] for agreed, *_ in row.reach]
    rounds = {spec: replay(row, spec).rounds for spec in {*row.same, *row.same.values()}}
    row.same = {spec: leader for spec, leader in row.same.items() if rounds[spec] == rounds[leader]}


@dataclass(slots=True)
class Replay:
    """An answer as it would have been with a setting."""

    plain_ms: float
    ms: float = 0.0
    tokens: int = 0
    rounds: list[tuple[int, int]] = field(default_factory=list)  # drafted, accepted
    strategies: list[str] = field(default_factory=list)  # whose draft, by round
    times: list[tuple[float, float]] = field(default_factory=list)  # ms of draft and pass

    @property
    def factor(self) -> float:
        return self.tokens * self.plain_ms / self.ms


class _Recorded(Drafter):
    """The draft model, from what is kept of it."""

    def __init__(self, params: Any, row: Row) -> None:
        self._params, self._row = params, row

    @override
    def propose(self, context: np.ndarray[Any, Any], k: int) -> Proposal:
        at = len(context) - len(self._row.prompt_ids)
        agreed, *p = self._row.reach[at] if at < len(self._row.reach) else [0]
        size = min(k, self._params.n_max, len(p))
        size = next((place for place in range(size) if p[place] < self._params.p_min), size)
        right = self._row.answer_ids[at : at + min(size, int(agreed))]
        ids = [*right, *[_WRONG] * (size - len(right))]
        return Proposal(ids if size >= self._params.n_min else [])


def replay(
    row: Row, spec: str, *, noise: float = 0.0, seed: int = 0, passes: PassSeconds | None = None
) -> Replay:
    """The rounds of a setting and their times; `noise` is the relative deviation of a time, and `passes` is
    what a calibration of the machine said beforehand. What has neither is replayed once."""
    key = row.case, row.prompt, row.plain_ms, spec
    if passes is not None or noise or row.answer_ids[0] >= MADE_UP:
        return _replay(row, spec, noise, seed, passes)
    if key not in _replays:
        _replays[key] = _replay(row, spec, noise, seed, passes)
    return _replays[key]


def _replay(row: Row, spec: str, noise: float, seed: int, passes: PassSeconds | None) -> Replay:
    parsed = StrategySpec.parse(spec)
    chance = random.Random(f"{row.case} {row.prompt} {spec} {seed}")

    def lasts(ms: float) -> float:
        return ms * max(0.6, chance.gauss(1.0, noise)) if noise else ms

    start, truth = len(row.prompt_ids), np.array(row.prompt_ids + row.answer_ids, np.int32)
    drafters = [(part.name, _drafter(part.name, part.params, row)) for part in parsed.parts]
    rule = parsed.length.make()
    around = RunContext(cast(Any, None), cast(Any, None), start, frozenset())
    for _name, drafter in drafters:
        drafter.begin(truth[:start], around)
    size, asking = _relative_size(row), _asking(row)
    limits = [
        StrategyLimits(part.name, part.shortest, part.longest, size if KINDS[part.name].needs_draft else 0.0)
        for part in parsed.parts
    ]
    done = Replay(row.plain_ms)
    most = max(row.max_tokens, len(row.answer_ids))
    rule.begin(Outset(limits, most, start, start * row.prompt_ms / 1e3, passes))
    while done.tokens < len(row.answer_ids):
        here = start + done.tokens
        draft = propose(drafters, rule, truth[:here], Budget(most - done.tokens - 1))
        ids, attempts, draft_ms = draft.proposal.ids, [], 0.0
        for attempt in draft.attempts or ():
            ms = lasts(_drafting(row, attempt.name, len(attempt.ids)) or asking)
            attempts.append(msgspec.structs.replace(attempt, unread=0, read_seconds=0.0, seconds=ms / 1e3))
            draft_ms += ms
        if draft.attempts is not None and parsed.length.by_clock and draft.proposal.end != MEASURES:
            draft_ms += THOUGHT * 1e3
        rest = truth[here:].tolist()
        accepted = next(
            (at for at, (token, right) in enumerate(zip(ids, rest, strict=False)) if token != right),
            min(len(ids), len(rest)),
        )
        emitted = rest[: accepted + 1]
        pass_ms = lasts(pass_time(row, len(ids) + 1))
        done.tokens += len(emitted)
        for name, drafter in drafters:
            own = name == draft.name
            drafter.observe(
                truth[: here + len(emitted)], draft.proposal if own else Proposal(), accepted if own else 0
            )
        if draft.attempts is not None:
            rule.observe(RoundCost(attempts, accepted, emitted, draft_ms / 1e3, pass_ms / 1e3))
        done.ms += draft_ms + pass_ms
        done.rounds.append((len(ids), accepted))
        done.strategies.append(draft.name if ids else "")
        done.times.append((draft_ms, pass_ms))
    return done


def _drafter(name: str, params: Any, row: Row) -> Drafter:
    if KINDS[name].needs_draft:
        return _Recorded(params, row)
    vocabulary = cast(Any, SimpleNamespace(size=1 << 18))
    return KINDS[name].make(params, Resources(vocabulary, lookup_caches=LookupCaches()))


def _relative_size(row: Row) -> float:
    """The draft's cost of a token; its share of the target's size is not far from it."""
    return min(row.drafts.values(), default=0.0) / row.plain_ms


def _drafting(row: Row, name: str, tokens: int) -> float:
    """The time of a draft model's draft, of which it computes at least one token; 0 of another strategy's."""
    return _between(row.drafts, max(1, tokens)) if KINDS[name].needs_draft else 0.0


def _asking(row: Row) -> float:
    """The ms of a round in which one strategy that copies was asked, and found nothing."""
    found = [
        each.draft_ms / rounds
        for spec, each in row.settings.items()
        if "draft-simple" not in spec and "+" not in spec and "length=" not in spec
        for rounds in [sum(each.rounds.values())]
        if each.rounds.get("0/0", 0) > 0.8 * rounds
    ]
    return median(found) if found else 0.05


def passes_of(row: Row, error: float = 0.0) -> PassSeconds:
    """What a calibration of this machine says, each time off by a relative error."""
    chance = random.Random(f"{row.case} {row.prompt}")
    off = {tokens: max(0.7, chance.gauss(1.0, error)) if error else 1.0 for tokens in (*WIDTHS, 0)}
    known = {tokens: ms for tokens, (ms, _) in row.passes.items()}
    # A width that no answer had is as much dearer than its neighbours as where it was timed.
    both = {tokens: row.timed[tokens] for tokens in known if tokens in row.timed}
    later = {
        tokens: ms * _between(known, tokens) / _between(both, tokens)
        for tokens, ms in row.timed.items()
        if tokens not in known
    }
    target = {tokens: ms / 1e3 * off[tokens] for tokens, ms in (later | known).items() if tokens in WIDTHS}
    draft = (_between(row.drafts, 1) if row.drafts else 0.0) / 1e3 * off[0]
    return PassSeconds(target, draft, error)


def pass_time(row: Row, tokens: int) -> float:
    """The time of a target pass, which a round's other work adds to."""
    rest = row.plain_ms - row.passes[1][0]
    return rest + _between({size: ms for size, (ms, _times) in row.passes.items()}, tokens)


def _between(times: Mapping[int, float], size: int) -> float:
    """On the line between the measured sizes around it, or through the two largest; a share of the
    smallest, of a smaller one."""
    sizes = sorted(times)
    if size < sizes[0]:
        return times[sizes[0]] * size / sizes[0]
    if size in times or len(sizes) < 2:
        return times.get(size, times[sizes[0]])
    at = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)
    low, high = sizes[at - 1], sizes[at]
    return times[low] + max(0.0, times[high] - times[low]) * (size - low) / (high - low)
