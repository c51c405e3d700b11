"""Walks through a known answer with other settings, to find the rounds that it would have had.

The drafters and length rules are the real ones, called as the loop calls them. Only a draft model is
replaced: its proposal is known if a recorded draft covers the position. (From inside an accepted draft, its
rest would be proposed.) Other positions are open, and filled with recorded ones.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf, log
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np
from typing_extensions import override

from app.engine.drafters.base import DRAFT_ENDED, Drafter, Proposal, Resources, RunContext
from app.engine.drafters.registry import KINDS
from app.engine.explain.cost import CostModel
from app.engine.fates import JUDGED, Verdict
from app.engine.lengths.auto import MEASURES
from app.engine.lengths.base import Fixed, Outset, RoundCost
from app.engine.loop.propose import Budget, NamedDrafter, propose
from app.engine.record.stats import sum_of
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import Alternatives, DraftedToken, Round, Sampling

if TYPE_CHECKING:
    from app.engine.types import TokenIds

UNSURE = "p_min"
_LONGEST_RUN = 3  # agreeing tokens in a row; longer runs count as this
_FEWEST_PLACES = 4  # recorded after runs of one length
_REJECTED = -1  # the id of a token that is not the text's
THOUGHT = 0.12e-3  # seconds that length=auto takes to consider a length, measured right after a pass


class DraftPlace(NamedTuple):
    """The draft model's proposal at one position of the answer."""

    agrees: bool
    p: float  # the draft model's own probability of it
    ends: bool = False  # the draft ends with it: it ends the answer
    tail: tuple[float, ...] = ()  # not accepted: the p of the tokens that were drafted behind it
    tail_end: str | None = None  # why the draft ended after them; None if that is not known
    gap: float = inf  # by how much its logit (where it was drawn, with its luck) was larger than the next
    tail_gap: float = inf  # the least of the tail


UNSURE_PLACE = DraftPlace(False, 0.0, gap=0.0)
"""A place where the draft model was below the recorded p_min, by an unknown amount."""
TIE = 0.25
"""A smaller gap between two logits may be reversed in a pass of a different width (see docs/measuring.md)."""
NEAR = 0.06
"""The same for the difference of two probabilities."""


@dataclass(slots=True)
class Walked:
    """The rounds of one walk, counted."""

    tokens: int = 0
    rounds: int = 0
    accepted: int = 0
    lengths: Counter[int] = field(default_factory=Counter)  # rounds by tokens drafted
    steps: Counter[str] = field(default_factory=Counter)  # tokens computed by each strategy, also those cut
    open_places: int = 0  # reached, and filled
    open_tails: int = 0  # drafts whose end behind a rejected token is not recorded
    close: int = 0  # places of drafts that rounding may have decided
    squares: int = 0  # of the tokens that rounds emitted
    thoughts: int = 0  # rounds in which a length was considered by times

    @staticmethod
    def of_all(parts: Iterable[Walked]) -> Walked:
        """The sum of walks."""
        walks = [*parts]
        return sum_of(walks) if walks else Walked()

    @property
    def drafted(self) -> int:
        return sum(length * rounds for length, rounds in self.lengths.items())


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt, its answer, and the known proposals of a draft model in it."""

    prompt_ids: Sequence[int]  # at least one
    ids: Sequence[int]  # of the answer
    max_tokens: int
    n_ctx: int
    n_vocab: int
    relative_size: float = 0.0  # the draft model's size / the target's
    places: Sequence[DraftPlace | None] = ()  # one for each token of the answer, or none
    pools: Sequence[Sequence[DraftPlace]] = ()
    """Recorded places that fill open ones, by the number of agreeing places right before them. The last list
    is for that number or more."""
    p_min: float = 0.0  # the recorded one
    most: int = sys.maxsize  # tokens of a draft, where longer ones were kept short for the text


def walk(text: Text, spec: StrategySpec, cost: CostModel, chance: random.Random) -> Walked:
    """Walk through a text once with a strategy that `walks` allows; `chance` fills the open places."""
    walked = Walked(len(text.ids))
    start = len(text.prompt_ids)
    whole = np.array([*text.prompt_ids, *text.ids], np.int32)
    drafters: list[NamedDrafter] = []
    around = RunContext(Sampler(Sampling()), Draws(0), start, frozenset())
    # Of the vocabulary, strategies that copy need the size alone.
    resources = Resources(cast(Any, SimpleNamespace(size=text.n_vocab)))
    for part in spec.parts:
        kind = KINDS[part.name]
        made = kind.make(part.params, resources) if not kind.by_model else None
        drafter = made or _RecordedDraft(text, part, walked, chance)
        drafter.begin(whole[:start], around)
        drafters.append((part.name, drafter))
    length = spec.length.make()
    length.begin(Outset(spec.limits(text.relative_size), text.max_tokens, passes=cost.calibration))
    at = 0
    while at < len(text.ids):
        room = min(text.max_tokens - at - 1, text.n_ctx - start - at, text.most)
        draft = propose(drafters, length, whole[: start + at], Budget(room))
        ids = draft.proposal.ids
        accepted = _same(ids, whole[start + at :])
        emitted = min(accepted + 1, len(text.ids) - at)
        walked.rounds += 1
        walked.accepted += min(accepted, emitted)
        walked.lengths[len(ids)] += 1
        walked.squares += emitted**2
        if draft.name and not KINDS[draft.name].by_model:
            walked.steps[draft.name] += len(ids)
        at += emitted
        truth = whole[: start + at]
        for name, drafter in drafters:
            own = name == draft.name
            drafter.observe(truth, draft.proposal if own else Proposal(), accepted if own else 0)
        if draft.attempts is not None and spec.length != Fixed():
            thinks = spec.length.by_clock and draft.proposal.end != MEASURES
            walked.thoughts += thinks
            single = cost.single_pass or 0.0
            seconds = [cost.step_seconds(each.name) * max(1, len(each.ids)) for each in draft.attempts]
            attempts = [
                msgspec.structs.replace(each, seconds=taken, read_seconds=0.0)
                for each, taken in zip(draft.attempts, seconds, strict=True)
            ]
            taken = (cost.v(len(ids)) or 1.0) * single
            emitted_ids = text.ids[at - emitted : at]
            drafting = sum(seconds) + THOUGHT * thinks
            length.observe(RoundCost(attempts, min(accepted, emitted), emitted_ids, drafting, taken))
    return walked


def walks(spec: StrategySpec) -> bool:
    """Whether a walk is possible: not with plug-ins or synthetic strategies."""
    return all(KINDS[part.name].walks for part in spec.parts)


def _same(ids: Sequence[int], text: TokenIds) -> int:
    """How many tokens of a draft agree with the text."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(ids, text.tolist(), strict=False)))


class _RecordedDraft(Drafter):
    """Stands in for a draft model: proposes the recorded tokens."""

    def __init__(self, text: Text, part: StrategyPart, walked: Walked, chance: random.Random) -> None:
        self._text, self._part, self._walked, self._chance = text, part, walked, chance
        self._start = len(text.prompt_ids)
        self._p_min = getattr(part.params, "p_min", 0.0)
        self._n_min = part.shortest if KINDS[part.name].least == "n_min" else 0
        # A draft that ended by the recorded p_min ends there under every higher one.
        self._stricter = self._p_min >= text.p_min

    @override
    def propose(self, context: TokenIds, k: int) -> Proposal:
        text, at, ids = self._text, len(context) - self._start, list[int]()
        limit = min(k, self._part.longest)
        while len(ids) < limit:
            here = at + len(ids)
            if here >= len(text.ids):  # behind the end of the answer
                self._walked.open_tails += 1
                ids += [_REJECTED] * (limit - len(ids))
                break
            place = text.places[here] if text.places else None
            if place is None or (place is UNSURE_PLACE and not self._stricter):
                self._walked.open_places += 1
                place = self._filled(place, here, len(ids))
            self._walked.steps[self._part.name] += 1
            self._walked.close += self._is_close(place.p, place.gap)
            if place is UNSURE_PLACE or place.p < self._p_min:
                break
            if not place.agrees:
                ids += [_REJECTED] * (self._behind(place, len(ids) + 1, limit) - len(ids))
                break
            ids.append(text.ids[here])
            if place.ends:
                break
        return Proposal(ids if len(ids) >= self._n_min else [], end="n_max")

    def _is_close(self, p: float, gap: float) -> bool:
        """Whether a pass of a different width may decide otherwise."""
        return gap < TIE or (self._p_min > 0 and abs(p - self._p_min) < NEAR)

    def _filled(self, place: DraftPlace | None, here: int, agreed: int) -> DraftPlace:
        """A recorded place for the open one at index `here`, after `agreed` tokens of this draft."""
        if place is None:
            pools = self._text.pools
            agreed += _agreed_before(self._text.places, here - agreed)
            place = self._chance.choice(pools[min(agreed, len(pools) - 1)]) if pools else UNSURE_PLACE
        if place is UNSURE_PLACE and not self._stricter:
            p = self._chance.uniform(0, self._text.p_min)
            place = DraftPlace(self._chance.random() < p, p)
        return place

    def _behind(self, place: DraftPlace, drafted: int, limit: int) -> int:
        """The length of a draft whose token number `drafted` is rejected, at `place`."""
        first = drafted
        if self._p_min > 0:
            self._walked.close += any(
                self._is_close(p, place.tail_gap) for p in place.tail[: limit - drafted]
            )
        for p in place.tail:
            if drafted == limit or p < self._p_min:
                break
            drafted += 1
        else:
            known = place.tail_end == DRAFT_ENDED or (place.tail_end == UNSURE and self._stricter)
            if drafted < limit and not known:
                self._walked.open_tails += 1
                drafted = limit
        self._walked.steps[self._part.name] += drafted - first
        return drafted


def recorded_places(
    rounds: Iterable[Round], tokens: int, temperature: float = 0.0
) -> list[DraftPlace | None]:
    """What a draft model's rounds say about the places of an answer drawn at this temperature."""
    places: list[DraftPlace | None] = [None] * tokens
    for round in rounds:
        names = [round.strategy] if round.drafted else round.asked or ()
        if not any(name in KINDS and KINDS[name].by_model for name in names):
            continue
        for at, place in _places(round, temperature):
            if at < tokens:
                places[at] = place
    return places


def same_text(rounds: Sequence[Round], ids: Sequence[int]) -> Sequence[Round]:
    """The rounds of an answer before the first whose text differs from these tokens."""
    for at, round in enumerate(rounds):
        if any(token.id != id for token, id in zip(round.emitted, ids[round.position :], strict=False)):
            return rounds[:at]
    return rounds


def places_of_both(
    first: Sequence[DraftPlace | None], second: Sequence[DraftPlace | None]
) -> list[DraftPlace | None]:
    """The places of a text recorded by two answers: for each, the record that says more."""

    def told(place: DraftPlace | None) -> tuple[bool, bool, int]:
        return place is not None, place is not UNSURE_PLACE, len(place.tail) if place is not None else 0

    return [max(both, key=told) for both in zip(first, second, strict=True)]


def pools_of(places: Sequence[DraftPlace | None]) -> Sequence[Sequence[DraftPlace]]:
    """Places that fill open ones, for `Text.pools`. After longer runs of agreement the next token agrees more
    often. If a long run has too few places, those after shorter runs are used."""
    pools: list[list[DraftPlace]] = [[] for _ in range(_LONGEST_RUN + 1)]
    for at, place in enumerate(places):
        if place is not None:
            pools[min(_agreed_before(places, at), _LONGEST_RUN)].append(place)
    if not any(pools):
        return ()
    known = [place for place in places if place is not None]
    for at in range(_LONGEST_RUN + 1):
        if len(pools[at]) < _FEWEST_PLACES:
            pools[at] = pools[at - 1] if at else known
    return pools


def _agreed_before(places: Sequence[DraftPlace | None], at: int) -> int:
    """How many known places in a row agreed right before a place."""
    before = (places[index] for index in range(min(at, len(places)) - 1, -1, -1))
    return sum(1 for _ in takewhile(lambda place: place is not None and place.agrees, before))


def _places(round: Round, temperature: float) -> Iterator[tuple[int, DraftPlace]]:
    """A round's recorded places, by their index in the answer."""
    last = len(round.drafted) - 1
    gaps = [_gap(round, at, temperature) for at in range(len(round.drafted))]
    for at, token in enumerate(round.drafted):
        if token.verdict not in JUDGED:
            return
        agrees = token.verdict is Verdict.ACCEPTED
        ends = at == last and round.draft_end == DRAFT_ENDED
        if agrees:
            yield round.position + at, DraftPlace(True, _p(token), ends, gap=gaps[at])
        else:
            tail = tuple(_p(behind) for behind in round.drafted[at + 1 :])
            end = round.draft_end if round.draft_end in (DRAFT_ENDED, UNSURE) else None
            least = min(gaps[at + 1 :], default=inf)
            yield round.position + at, DraftPlace(False, _p(token), ends, tail, end, gaps[at], least)
            return
    behind = round.position + len(round.drafted)
    if round.draft_end == UNSURE and len(round.emitted) > len(round.drafted):
        yield behind, UNSURE_PLACE


def _p(token: DraftedToken) -> float:
    """The probability that p_min is compared with; for a drawn token it is not the token's own p, and was
    enough."""
    return token.draft_p if token.draft_p is not None and token.draft_drawn is None else 1.0


def _gap(round: Round, place: int, temperature: float) -> float:
    """By how much a drafted token's logit exceeded the next one's, with their luck if it was drawn."""
    token = round.drafted[place]
    if token.draft_drawn is not None:
        return token.draft_race.gap * temperature if token.draft_race is not None else 0.0
    return lead(round.draft_top[place]) if place < len(round.draft_top) else inf


def lead(top: Alternatives) -> float:
    """By how much the best token's logit exceeds the second's."""
    return log(top.p[0] / top.p[1]) if len(top.p) > 1 and min(top.p[:2]) > 0 else inf
