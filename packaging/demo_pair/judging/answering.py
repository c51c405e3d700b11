"""Answers of a pair with the app's own engine, and the target's whole rows of logits."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Read by the OpenMP runtime when the library is loaded, so it has to stand before the import.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import numpy as np
from app.engine import Engine, GenerationRequest, ModelOptions
from app.engine.process.messages import Finished, RoundFinished
from app.engine.types import Round, Totals
from llama_cpp import Llama

CONTEXT = 2048


@dataclass(frozen=True, slots=True)
class Answer:
    rounds: Sequence[Round]
    totals: Totals

    @property
    def speed(self) -> float:
        """Tokens a second from the start of round 0."""
        return sum(len(round.emitted) for round in self.rounds) / self.totals.seconds

    @property
    def tokens(self) -> list[int]:
        return [token.id for round in self.rounds for token in round.emitted]


def answered(engine: Engine, request: GenerationRequest) -> Answer:
    rounds: list[Round] = []
    for event in engine.generate(request):
        match event:
            case RoundFinished():
                rounds.append(event.round)
            case Finished():
                return Answer(rounds, event.totals)
    raise RuntimeError("the engine did not finish")


def loaded(pair: Path, draft: str, threads: int = 0) -> Engine:
    """The pair in the engine of this process; `threads` are the target's: a draft this small has one."""
    return Engine(
        ModelOptions(str(pair / "target.gguf"), ctx_size=CONTEXT, threads=threads),
        ModelOptions(str(pair / draft), ctx_size=CONTEXT),
    )


class Rows:
    """What the target thinks of a text, at every token of it."""

    def __init__(self, pair: Path) -> None:
        path = str(pair / "target.gguf")
        self.model = Llama(path, n_ctx=CONTEXT, n_batch=512, n_threads=1, logits_all=True, verbose=False)

    def tokens(self, text: str) -> list[int]:
        return list(self.model.tokenize(text.encode(), add_bos=False, special=False))

    def log_probabilities(self, ids: Sequence[int]) -> np.ndarray:
        """(len(ids), vocab) in nats: row n is about the token behind the first n + 1."""
        self.model.reset()
        self.model.eval(list(ids))
        logits = self.model.scores[: len(ids)].astype(np.float64)
        shifted = logits - logits.max(-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))
