"""Drafting a round: strategies are asked in turn, within the limits of the draft length."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from app.engine.drafters.base import ENOUGH, Drafter, Proposal
from app.engine.lengths.base import RIDE_ALONG, Attempt, DraftLength

if TYPE_CHECKING:
    from app.engine.types import TokenIds

NamedDrafter = tuple[str, Drafter]


class Budget(msgspec.Struct, frozen=True):
    """The most tokens that a round can use, and the reason for the limit."""

    tokens: int
    limit: str = ENOUGH


class Draft(msgspec.Struct, frozen=True):
    """The draft that a round verifies, and the strategy that proposed it ("" if none did)."""

    name: str
    proposal: Proposal
    attempts: Sequence[Attempt] | None = None
    """Empty if the length rule let no strategy draft: the rule learns from that too. None if the rule was not
    asked or skips the round, and does not observe it."""

    @property
    def asked(self) -> tuple[str, ...]:
        """The strategies that were asked for a draft to verify, in order."""
        return tuple(attempt.name for attempt in self.attempts or () if not attempt.looked)

    @property
    def reading(self) -> float:
        """Seconds in which a draft model read new text, except text read with its first step."""
        return math.fsum(
            attempt.read_seconds for attempt in self.attempts or () if attempt.unread > RIDE_ALONG
        )


def propose(drafters: Sequence[NamedDrafter], length: DraftLength, truth: TokenIds, space: Budget) -> Draft:
    """The first non-empty proposal after the truth, of shape [n], in order of precedence.

    Its length is within the space. If there is no proposal, the empty one says why.
    """
    if not drafters:
        return Draft("", Proposal())
    room = space.tokens
    if room <= 0:
        return Draft("", Proposal(end=space.limit))
    if length.sit_out(truth):
        return Draft("", Proposal(end=length.rest_reason))
    attempts: list[Attempt] = []
    ends: list[str] = []
    faults: list[str] = []
    for name, drafter in drafters:
        k = length.choose(name, room, partial(drafter.unread, truth))
        if k == 0:
            ends.append(length.rest_reason)
            if k := length.look(name, room):
                seen, attempt = _asked(name, drafter, truth, k, length)
                attempts.append(msgspec.structs.replace(attempt, looked=True))
                if seen.fault:
                    faults.append(seen.fault)
            continue
        proposal, attempt = _asked(name, drafter, truth, k, length)
        attempts.append(attempt)
        if proposal.ids:
            if len(proposal.ids) == k < room:
                proposal.end = length.reason
            elif len(proposal.ids) == room and proposal.end == ENOUGH:
                proposal.end = space.limit
            proposal.end = "; ".join(filter(None, [*faults, proposal.end]))
            return Draft(name, proposal, attempts)
        ends.append(proposal.end)
        if proposal.fault:
            faults.append(proposal.fault)
    end = ends[0] if len(set(ends)) == 1 else "no strategy found a draft"
    return Draft("", Proposal(end="; ".join(faults) or end), attempts)


def _asked(
    name: str, drafter: Drafter, truth: TokenIds, k: int, length: DraftLength
) -> tuple[Proposal, Attempt]:
    """One strategy's proposal of at most k tokens, and the time it took."""
    began = time.perf_counter()
    unread = drafter.unread(truth) if length.lazy else 0
    if unread > RIDE_ALONG:
        for _ in drafter.read(truth):
            pass
    read = time.perf_counter()
    proposal = drafter.propose(truth, k)
    ended = time.perf_counter()
    return proposal, Attempt(name, k, proposal.ids, unread, read - began, ended - read)
