"""Servers and Hubs that lie: in numbers, in shapes, without an end, packed, nested, byte by byte.

A "file" of this kind is a lie: which of the answers it is told in, and how. Whatever is told, there is a
sentence or an answer that can be written down, no more than 200 MB are taken for it, and an honest server is
heard as before.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Protocol
from unittest.mock import patch

import msgspec
from huggingface_hub import close_session

from app.engine.errors import UserError
from app.engine.process.messages import Finished, RoundFinished, Started
from app.engine.record.trace import line_of, parse_trace
from app.engine.strategy import SERVER
from app.engine.types import GenerationRequest, Message
from app.hub.hub import Hub
from app.hub.repo import read_repo, search
from app.servers.client import ServerClient
from tests.faults.campaign import Fate, checked
from tests.faults.damage import damaged, damaged_text
from tests.hub.server import FakeHub, FakeRepo, Fault, running
from tests.servers.recorded_vllm import CHUNKS, DETAILED, vllm
from tests.servers.scripted import DRAFTING, Answer, Asked, event, llama_server, serving

_MOST = 200 << 20  # bytes more than before
_PATIENCE = 0.5  # seconds
_LONGEST = 3.0  # seconds after which somebody presses Stop
_NUMBERS = (-1, 2_000_000_000, 2**31, 2**63, 2**64 - 1, 10**30, 1e308)
_HOWS = ("damaged", "number", "number", "number", "endless", "packed", "deep", "many", "slow", "status")
_PACKED = gzip.compress(gzip.compress(b" " * 2**24))
_DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
_MANY = (b"[[]" + b",[]" * 2**20 + b"]", b"{" + b",".join(b'"%d":1' % n for n in range(2**17)) + b"}")


class Lie(msgspec.Struct):
    """What is told instead of the truth."""

    told_in: str
    how: str
    body: bytes  # what is told in "damaged", "number" and "status"
    status: int = 200


class _Memory:
    """The most memory that this process takes; 0 where the system does not tell it."""

    def __init__(self) -> None:
        self._status = Path("/proc/self/status")
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            self._status = Path("/nonexistent")
        self._before = self._peak()

    def _peak(self) -> int:
        if not self._status.exists():
            return 0
        found = re.search(r"VmHWM:\s+(\d+) kB", self._status.read_text())
        return int(found[1]) * 1024 if found else 0

    def check(self) -> None:
        more = self._peak() - self._before
        assert more < _MOST, f"{more >> 20} MB were taken"


class _Asks(Protocol):
    def __call__(self) -> object: ...


def _lied(truth: bytes, told_in: str, random: Random) -> Lie:
    """A lie in place of an answer."""
    how, body = random.choice(_HOWS), b""
    if how == "damaged":
        body = random.choice((damaged, damaged_text, damaged_text))(truth, random)
    elif how == "number":
        places = [found.span() for found in re.finditer(rb"(?<=[:\[, ])\d+", truth)]
        begin, end = random.choice(places) if places else (0, 0)
        body = truth[:begin] + json.dumps(random.choice(_NUMBERS)).encode() + truth[end:]
    return Lie(told_in, how, body, random.choice((302, 400, 401, 404, 429, 500)) if how == "status" else 200)


def _fate(ask: _Asks) -> Fate:
    """What becomes of a question, whose memory and words are checked."""
    memory = _Memory()
    try:
        ask()
        fate = Fate.OPENED
    except UserError as error:
        checked(error)
        fate = Fate.REFUSED
    memory.check()
    return fate


class LyingServers:
    """Each lie is told by a server of its own."""

    name = "lying servers"

    def __init__(self) -> None:
        self._honest = {
            "llama-server": llama_server(*DRAFTING),
            "vLLM": vllm(*CHUNKS, told=DETAILED, counted=True),
        }
        for script in self._honest.values():
            with serving(script) as server:
                assert self._answer(server.address, 30.0) is Fate.OPENED

    def make(self, random: Random) -> bytes:
        kind = random.choice(list(self._honest))
        path = random.choice([*self._honest[kind], "stream", "stream", "stream"])
        chunks = DRAFTING if kind == "llama-server" else CHUNKS
        truth = b"".join(map(event, chunks)) if path == "stream" else _told(self._honest[kind][path])
        return msgspec.json.encode(_lied(truth, f"{kind} {path}", random))

    def open(self, data: bytes) -> Fate:
        lie = msgspec.json.decode(data, type=Lie)
        kind, _, path = lie.told_in.partition(" ")
        script = dict(self._honest[kind])
        streams = [name for name in script if "complet" in name]
        for name in streams if path == "stream" else [path]:
            script[name] = _liar(lie, script[name], streamed=path == "stream")
        with serving(script) as server:
            fate = self._answer(server.address, _PATIENCE)
        with serving(self._honest[kind]) as server:
            assert self._answer(server.address, 30.0) is Fate.OPENED, "an honest server is not heard"
        return fate

    def _answer(self, address: str, patience: float) -> Fate:
        ends = time.monotonic() + max(_LONGEST, patience)
        client = ServerClient(address, "", lambda: time.monotonic() > ends, patience)
        request = GenerationRequest(
            messages=(Message("user", "Count."),), strategy=SERVER, max_tokens=5, cold=True
        )

        def ask() -> None:
            lines = []
            for heard in client.generate(request):
                part = (
                    heard.header if isinstance(heard, Started)
                    else heard.round if isinstance(heard, RoundFinished)
                    else heard.totals if isinstance(heard, Finished)
                    else None
                )  # fmt: skip
                assert part is not None
                lines.append(line_of(part))
            if lines:
                parse_trace(lines)

        return _fate(ask)

    def close(self) -> None:
        pass


def _told(answer: Answer | Callable[[Asked], Answer]) -> bytes:
    """What a path answers where nothing is streamed."""
    told = answer(Asked("", {}, {})) if callable(answer) else answer
    return told.body if isinstance(told.body, bytes) else json.dumps(told.body).encode()


def _liar(lie: Lie, honest: Any, *, streamed: bool) -> Callable[[Asked], Answer]:
    """The answer of a path that lies, where it streams or only where it does not."""

    def answer(asked: Asked) -> Answer:
        if streamed != bool(asked.body and asked.body.get("stream")):
            return honest(asked) if callable(honest) else honest
        match lie.how:
            case "endless":
                return Answer(pieces=itertools.repeat(b"data: {}\n" * 1000 if streamed else b" " * 2**16))
            case "slow":
                return Answer(pieces=_slowly())
            case "packed":
                return Answer(_PACKED, headers={"Content-Encoding": "gzip, gzip"})
            case "deep":
                return Answer(b"data: " + _DEEP + b"\n\n" if streamed else _DEEP)
            case "many":
                return Answer(b"data: " + _MANY[1] + b"\n\n" if streamed else _MANY[0])
        return Answer(lie.body, lie.status, {"Location": "http://127.0.0.1:9/"} if lie.status == 302 else {})

    return answer


def _slowly() -> Iterator[bytes]:
    for _ in range(1000):
        time.sleep(0.05)
        yield b" "


class LyingHubs:
    """One Hub for all lies."""

    name = "lying hubs"

    def __init__(self) -> None:
        self._open = ExitStack()
        self._open.enter_context(patch.dict("os.environ", {"NO_PROXY": "127.0.0.1", "HF_TOKEN": ""}))
        close_session()  # of another environment
        self._server: FakeHub = self._open.enter_context(running())
        self._server.repos["owner/model-GGUF"] = FakeRepo(
            {"model-Q4_K_M.gguf": b"GGUF", "model-Q8_0.gguf": b"GGUF8"}
        )
        self._hub = Hub(endpoint=self._server.address)
        with self._hub.asking("its answers"):
            self._truth = {
                "search": self._hub.get("/api/models", {"search": "model"}),
                "repo": self._hub.get("/api/models/owner/model-GGUF/revision/main", {"blobs": True}),
            }

    def make(self, random: Random) -> bytes:
        told_in = random.choice(list(self._truth))
        return msgspec.json.encode(_lied(self._truth[told_in], told_in, random))

    def open(self, data: bytes) -> Fate:
        lie = msgspec.json.decode(data, type=Lie)
        asks: dict[str, _Asks] = {
            "search": lambda: search(self._hub, "model"),
            "repo": lambda: [
                read_repo(self._hub, "owner/model-GGUF").chosen(),
                search(self._hub, "owner/model-GGUF"),
            ],
        }
        self._server.always["api"] = _fault(lie)
        with patch("app.hub.hub.WHOLE_SECONDS", 1.0 if lie.how == "slow" else 60.0):
            fate = _fate(asks[lie.told_in])
        self._server.clear()
        for ask in asks.values():
            assert _fate(ask) is Fate.OPENED, "an honest Hub is not heard"
        return fate

    def close(self) -> None:
        self._open.close()
        close_session()


def _fault(lie: Lie) -> Fault:
    match lie.how:
        case "endless":
            return Fault(body=b" " * (40 << 20))
        case "slow":
            return Fault(body=b" " * 2**20, pace=0.05)
        case "packed":
            return Fault(body=_PACKED, headers=(("Content-Encoding", "gzip, gzip"),))
        case "deep":
            return Fault(body=_DEEP)
        case "many":
            return Fault(body=_MANY[0])
        case "status":
            return Fault(status=lie.status, headers=(("Location", "http://127.0.0.1:9/"),))
    return Fault(body=lie.body)
