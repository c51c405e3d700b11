"""Rounds of every strategy, by the hundred thousand: the memory of the engine and of its caller stays flat.

A "file" of this kind is a plan: answers of every strategy, in the same order, each with a prompt and a
sampling of its own. What strategies keep between answers is kept, as in a window, but has a limit that
20,000 rounds reach; the caller records every round into a chat.
"""

from __future__ import annotations

import gc
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

import msgspec
import psutil

from app.engine.process.client import EngineClient
from app.engine.process.host import ProcessHome
from app.engine.process.messages import Finished, RoundFinished, Started
from app.engine.types import GenerationRequest, ModelOptions, Sampling
from app.saved.chats.recorder import AnswerRecorder
from app.saved.chats.store import ChatStore
from tests.equality import NGRAMS, STRATEGIES
from tests.faults.campaign import Fate
from tests.files.tiny import Tiny, write_tiny

ROUNDS = 2_000  # of a plan, at least
_SETTLED = 20_000  # rounds after which memory must stay
_GROWTH = 1.02  # that is allowed from there on
_FIVE = 5  # looks, of which the least counts: between two plans something may wait to be freed
_SPECS = tuple(
    spec.format(k=4).replace("suffix:", "suffix:max_cached_tokens=2000:")
    for spec in ("none", "oracle:alpha=0.7:cost=0:n_max={k}", *STRATEGIES.values(), *NGRAMS.values())
)
_WORDS = ("abc", "cab", " fox", " the", "x", "12", "\n", "{}")


class Asked(msgspec.Struct):
    """An answer of a plan."""

    strategy: str
    prompt: str
    temperature: float
    seed: int


class Memory:
    """One engine for all plans. Its memory and ours are looked at after each."""

    name = "memory"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        target = write_tiny(self._folder / "target.gguf", Tiny(name="target", n_ctx=1024))
        draft = Tiny(name="draft", n_ctx=1024, noise=0.15, noise_seed=7)
        near = write_tiny(self._folder / "draft.gguf", draft)
        self._home = ProcessHome()
        self._client = EngineClient(self._home, lambda: False)
        list(self._client.load(ModelOptions(str(target)), ModelOptions(str(near))))
        self._store = ChatStore(self._folder)
        self._rounds = 0
        self._seen: list[tuple[int, int, int]] = []  # rounds so far, bytes of the engine and of us

    def make(self, random: Random) -> bytes:
        answers = [
            Asked(
                spec,
                "".join(random.choices(_WORDS, k=random.randrange(1, 200))),
                random.choice((0.0, 0.0, 0.8, 1.5)),
                random.randrange(1000),
            )
            for spec in _SPECS
        ]
        return msgspec.json.encode(answers)

    def open(self, data: bytes) -> Fate:
        """Give every strategy its rounds; one that drafts well needs several answers for them."""
        for asked in msgspec.json.decode(data, type=list[Asked]):
            wanted = self._rounds + ROUNDS // len(_SPECS) + 1
            while self._rounds < wanted:
                self._answer(asked)
        self._look()
        return Fate.OPENED

    def _answer(self, asked: Asked) -> None:
        chat = self._store.ask(self._store.new("completion"), asked.prompt)
        recorder: AnswerRecorder | None = None
        request = GenerationRequest(
            asked.prompt,
            strategy=asked.strategy,
            sampling=Sampling(temperature=asked.temperature, seed=asked.seed),
            max_tokens=200,
            ignore_eos=True,
        )
        for event in self._client.generate(request):
            if isinstance(event, Started):
                chat, recorder = self._store.begin_answer(chat, event.header)
            elif isinstance(event, RoundFinished):
                assert recorder is not None
                self._rounds += 1
                recorder.add(event.round)
            elif isinstance(event, Finished):
                assert recorder is not None
                recorder.finish(event.totals)
        self._store.delete(chat.id)
        self._store.empty_trash()

    def _look(self) -> None:
        gc.collect()
        self._seen.append((self._rounds, _bytes(self._home.pid), _bytes(None)))
        settled = [look for look in self._seen if look[0] >= _SETTLED]
        if not settled:
            return
        for place, whose in ((1, "the engine"), (2, "its caller")):
            before, after = (
                min(look[place] for look in looks[:_FIVE]) for looks in (settled, settled[-_FIVE:])
            )
            assert after <= before * _GROWTH, (
                f"{whose} had {before / 1e6:.1f} MB after {_SETTLED:,} rounds, and {after / 1e6:.1f} MB "
                f"after {self._rounds:,}"
            )

    def close(self) -> None:
        self._home.close()
        shutil.rmtree(self._folder)
        for rounds, engine, ours in self._seen:
            print(
                f"memory after {rounds:,} rounds: engine {engine / 1e6:.2f} MB, caller {ours / 1e6:.2f} MB",
                file=sys.stderr,
            )


def _bytes(pid: int | None) -> int:
    """What a process has for itself alone: files that are mapped belong to the system's cache."""
    return int(psutil.Process(pid).memory_full_info().uss)
