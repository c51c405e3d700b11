"""oracle: drafts the target's own answer with planted errors, at a chosen cost. For experiments only."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.engine.drafters.base import Drafter, Proposal, Rehearsal, RunContext, StrategyKind
from app.engine.params import param
from app.engine.sampling.draws import Draws, Purpose

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_LEFT = "the answer diverged from the rehearsal"
_OVER = "end of the rehearsed answer"
_SPIN = 0.001  # seconds: a sleep may last this much longer than asked for
_NAP = 0.05  # seconds: a dear draft may take minutes, and Stop is not to wait for it


@dataclass(frozen=True, slots=True)
class OracleParams:
    """Settings of the synthetic draft.

    alpha: Chance that a judged draft token is accepted. Usually 0.5 to 0.95: what a draft model might reach.
    cost: Time of one drafted token, as a share of a target pass. Usually 0.02 to 0.3 for a draft model; 0 for
        an n-gram strategy.
    n_max: Draft this many tokens per round. Usually 2 to 16: more pays if alpha is high and cost is low.
    """

    alpha: float = param(0.8, low=0, high=1)
    cost: float = param(0.1, low=0, high=10)
    n_max: int = param(4, low=1, high=512, unit="tokens")


class Oracle(Drafter):
    """Knows the answer from a rehearsal without speculation, which is not part of any measured time.

    Each drafted token is wrong with chance 1 - alpha, independently of the others, so a judged token passes
    with chance alpha. Seed, prompt and repeat determine the places. The drafter sleeps to reach the chosen
    time.
    """

    def __init__(self, params: OracleParams, n_vocab: int) -> None:
        self._n_vocab = n_vocab
        self.adjust(params)

    def adjust(self, params: OracleParams) -> None:
        self._params = params

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        self._rehearsal = surroundings.rehearsal or Rehearsal()
        prompt = context[: surroundings.prompt_length].tobytes()
        self._draws = _planted(surroundings.draws.seed, self._rehearsal.repeat, prompt)
        self._is_stopped = surroundings.is_stopped
        self._start = surroundings.prompt_length
        self._checked = len(context) - self._start

    def propose(self, context: TokenIds, k: int) -> Proposal:
        began = time.perf_counter()
        known, position = self._rehearsal.ids, len(context) - self._start
        if context[self._start + self._checked :].tolist() != known[self._checked : position]:
            return Proposal(end=_LEFT)
        self._checked = position
        right = known[position : position + min(k, self._params.n_max)]
        if not right:
            return Proposal(end=_OVER)
        draws = (
            self._draws.uniform(position + place, Purpose.DRAFT, position) for place in range(len(right))
        )
        ids = [
            token if draw < self._params.alpha else (token + 1) % self._n_vocab
            for token, draw in zip(right, draws, strict=True)
        ]
        self._wait_until(began + len(ids) * self._params.cost * self._rehearsal.pass_seconds)
        return Proposal(ids)

    def _wait_until(self, moment: float) -> None:
        while (left := moment - time.perf_counter()) > _SPIN and not self._is_stopped():
            time.sleep(min(left - _SPIN, _NAP))
        while time.perf_counter() < moment and not self._is_stopped():
            pass


def _planted(seed: int, repeat: int, prompt: bytes) -> Draws:
    """The draws of planted errors. They depend on the prompt: errors at the same places in all prompts would
    make intervals too narrow."""
    digest = hashlib.blake2b(f"{seed} {repeat} ".encode() + prompt, digest_size=8).digest()
    return Draws(int.from_bytes(digest, "little") >> 1)


KIND = StrategyKind(
    "oracle",
    OracleParams,
    "Synthetic: drafts the answer itself, known from a rehearsal, with planted errors. Shows what a draft "
    "with this acceptance and cost would gain on this machine.",
    is_synthetic=True,
    least="",
    memory=(),
    walks=False,
    make=lambda params, resources: Oracle(params, resources.vocabulary.size),
)
