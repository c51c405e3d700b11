"""Lanes on a real llama-server, held against our own engine on the same files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import override

from app.engine.engine import Engine
from app.engine.native.head_context import Eagle3Context
from app.engine.native.heads import MtpContext
from app.engine.process.messages import Finished, RoundFinished, trace_of
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.strategy import NONE, SERVER
from app.engine.types import FinishReason, GenerationRequest, Message, Round, Sampling
from app.servers.client import ServerClient
from tests.files.heads import PAIRS, Make, files
from tests.servers.real_server import STORY, STRATEGIES, VARIABLE, find_server, running

PROGRAM = find_server()
pytestmark = [
    pytest.mark.same_text,
    pytest.mark.skipif(PROGRAM is None, reason=f"make peer builds llama-server, or {VARIABLE} names one"),
]
MAX_TOKENS = 64
Serve = Callable[[str], AbstractContextManager[ServerClient]]


@pytest.fixture
def serve(demo_pair: tuple[Path, Path]) -> Serve:
    """Starts a server of the bundled pair with a strategy."""

    @contextmanager
    def start(strategy: str) -> Iterator[ServerClient]:
        target, draft = demo_pair
        with running(PROGRAM, target, draft if "draft" in strategy else None, strategy) as address:
            yield ServerClient(address, "", lambda: False)

    return start


def answer_of(client: ServerClient, request: GenerationRequest) -> Trace:
    return trace_of(client.generate(request))


def fates(rounds: list[Round]) -> list[tuple[list[int], list[str]]]:
    """What was emitted in every round, and the verdicts on its draft."""
    return [
        ([token.id for token in round.emitted], [token.verdict.value for token in round.drafted])
        for round in rounds
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fates_and_text_are_those_of_our_own_engine(serve: Serve, demo_engine: Engine, strategy: str):
    request = GenerationRequest(
        prompt=STORY * 3, strategy=SERVER, max_tokens=MAX_TOKENS, ignore_eos=True, cold=True
    )
    with serve(strategy) as client:
        trace = answer_of(client, request)
        info = client.describe()

    assert info.server.speculation == tuple(part.split(":")[0] for part in strategy.split("+"))
    assert recheck(trace) == []
    # llama-server's first token comes out of the prompt's pass: from there on both loops do the same.
    prompt = demo_engine.prompt_ids(request)
    first, *rest = trace.rounds
    ours = trace_of(
        list(
            demo_engine.generate(
                GenerationRequest(
                    prompt_ids=(*prompt, first.emitted[0].id),
                    strategy=strategy,
                    max_tokens=MAX_TOKENS - 1,
                    ignore_eos=True,
                    cold=True,
                )
            )
        )
    )
    assert trace.token_ids == (first.emitted[0].id, *ours.token_ids)
    assert fates(rest) == fates(ours.rounds)
    assert any(round.drafted for round in rest), "nothing was drafted: the test shows nothing"


class ServersMtp(MtpContext):
    """Reads a prompt's first token beside the last row of the request before."""

    _last: NDArray[np.float32] | None = None

    def answered(self, tokens: int) -> None:
        """An answer has ended: its text, prompt included, has so many tokens. The last was not read."""
        self._last = self._features.rows(tokens - 2, tokens - 1).copy()

    @override
    def _begin(self, first: NDArray[np.int32]) -> None:
        if self._last is None:
            super()._begin(first)
        else:
            self._entries(first, self._last, wanted=False)


class ServersEagle3(Eagle3Context):
    """Of a hybrid target, llama-server reads the last four tokens of a prompt in a batch of their own. The
    first of them is read beside the row of the last, which has overwritten that of the token before."""

    @override
    def _fused(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.n_cached == 1 and self._target.model.is_recurrent:
            features = features.copy()
            features[len(features) - 4] = self._features.rows(self._features.end - 1, self._features.end)[0]
        return super()._fused(features)


@pytest.mark.parametrize("kind", PAIRS)
def test_heads_draft_what_those_of_the_server_draft(
    kind: str, tiny_file: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with random weights over few tokens: now and then a guess is right, and shows the guesses.

    llama-server gives two heads a row that is not that of the token before (common/speculative.cpp); ours get
    the same ones here.
    """
    for place in ("native.heads.MtpContext", "pair.MtpContext"):
        monkeypatch.setattr(f"app.engine.{place}", ServersMtp)
    monkeypatch.setattr("app.engine.native.heads.Eagle3Context", ServersEagle3)
    target, head = files(kind, tiny_file, letters="abcdefghĊĠ")
    name, *_ = kind.split()
    strategy = f"{name}:n_max=3" + (":p_min=0.5" if name == "draft-dspark" else "")  # by its confidence
    accepted = 0
    with Engine(target, head) as engine:
        ours = engine.draft or engine.models.mtp
        draft = engine.pair.draft.architecture if engine.pair.draft else ""
        with running(PROGRAM, target, head, strategy, draft_kind=draft) as address:
            client = ServerClient(address, "", lambda: False)
            assert client.describe().server.speculation == (name,)
            # The first prompt shows nothing: before it the server was asked what it is.
            for number, (first, second) in enumerate(chain(["hh"], product("abcdefgh", repeat=2))):
                request = GenerationRequest(
                    prompt=f"{first}{second}cabd{second}", strategy=SERVER, max_tokens=9, ignore_eos=True,
                    cold=True,
                )  # fmt: skip
                told, *rest = answer_of(client, request).rounds
                ids = (*engine.prompt_ids(request), told.emitted[0].id)
                trace = engine.answer(
                    replace(request, prompt=None, prompt_ids=ids, strategy=strategy, max_tokens=8)
                )
                rounds = trace.rounds
                if isinstance(ours, ServersMtp):
                    ours.answered(len(ids) + len(trace.token_ids))
                assert number == 0 or fates(rest) == fates(rounds)
                accepted += sum(round.accepted for round in rounds)
    assert accepted > 0


def test_a_temperature_keeps_the_text_of_the_server_without_drafts(serve: Serve):
    request = GenerationRequest(
        messages=(Message("user", "Tell me a short story about a fox."),),
        strategy=SERVER,
        sampling=Sampling(temperature=0.7, seed=5),
        max_tokens=MAX_TOKENS,
        cold=True,
    )
    with serve("draft-simple:n_max=4") as drafting:
        drafted = answer_of(drafting, request)
    with serve(NONE) as plain:
        alone = answer_of(plain, request)

    assert recheck(drafted) == recheck(alone) == []
    assert alone.header.strategy == NONE and not any(round.drafted for round in alone.rounds)
    assert drafted.token_ids == alone.token_ids


def test_stop_frees_the_server_s_slot(serve: Serve):
    request = GenerationRequest(prompt=STORY, strategy=SERVER, max_tokens=900, ignore_eos=True, cold=True)
    stopped = False
    with serve(NONE) as known:
        known.describe()
        client = ServerClient(known.address, "", lambda: stopped)
        events = client.generate(request)
        while not isinstance(next(events), RoundFinished):
            continue
        stopped = True
        (*_, last) = events
        # With its only slot still taken the server would not answer before 900 tokens.
        again = answer_of(known, replace(request, max_tokens=2))

    assert isinstance(last, Finished) and last.totals.finish_reason is FinishReason.CANCELLED
    assert len(again.token_ids) == 2
