"""A small real HTTP server that answers as a script says: as llama-server, as vLLM, or as nobody should."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """What a path answers: `body` as JSON or as it is, `pieces` as a stream. `cut` ends the connection
    without the stream's end."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes] | None = None
    cut: bool = False


Script = Mapping[str, Answer | Callable[[Asked], Answer]]


@dataclass
class ScriptedServer:
    """Its address, and what it was asked. `released` ends what hangs in it."""

    address: str
    script: Script
    asked: list[Asked] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def bodies(self, path: str) -> list[Any]:
        return [asked.body for asked in self.asked if asked.path == path]


@contextmanager
def serving(script: Script) -> Iterator[ScriptedServer]:
    """A server with this script, for a while; a path that is not in it is not found."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            served.asked.append(asked)
            answer = served.script.get(self.path, Answer({"error": {"message": "File Not Found"}}, 404))
            try:
                self._send(answer(asked) if callable(answer) else answer)
            except OSError:  # the client has closed the connection
                self.close_connection = True

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.pieces is None:
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in answer.pieces:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
            if answer.cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        @override
        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exc_info()[1], ConnectionError):  # the client may go at any time
                super().handle_error(request, client_address)

    with Server(("127.0.0.1", 0), Handler) as server:
        served = ScriptedServer(f"http://127.0.0.1:{server.server_port}", script)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            served.released.set()
            server.shutdown()
            thread.join()


def event(data: object) -> bytes:
    """An event of a stream."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


PROPS = {
    "default_generation_settings": {"params": {"temperature": 0.8, "top_k": 40}, "n_ctx": 1024},
    "total_slots": 2,
    "model_path": "/models/target.gguf",
    "model_ftype": "Q4_0",
    "build_info": "b1-0c1e570",
    "chat_template": "{{ messages }}",
}
MODELS = {"data": [{"id": "x", "meta": {"n_vocab": 4096, "n_ctx_train": 2048, "n_params": 30, "size": 40}}]}


def counted(token: int, text: str, predicted: int, drafted: int = 0, accepted: int = 0) -> dict[str, Any]:
    """A chunk of llama-server's stream: one token, with the counters that hold for it."""
    timings = {"cache_n": 0, "predicted_ms": 1.0, "draft_n": drafted, "draft_n_accepted": accepted}
    return {
        "content": text,
        "tokens": [token],
        "stop": False,
        "tokens_predicted": predicted,
        "tokens_evaluated": 3,
        "timings": timings,
    }


def ended(predicted: int, drafted: int = 0, accepted: int = 0, stop_type: str = "limit") -> dict[str, Any]:
    """The last chunk of llama-server's stream."""
    last = counted(0, "", predicted, drafted, accepted)
    return {**last, "tokens": [], "stop": True, "stop_type": stop_type, "truncated": False}


DRAFTING = (counted(1, "a", 1), counted(2, "b", 2, 2, 1), counted(3, "c", 3, 2, 1), ended(3, 2, 1))
"""The chunks of an answer in which every second draft was accepted."""
PLAIN = (counted(1, "a", 1), counted(2, "b", 2), counted(3, "c", 3), ended(3))
"""The same answer without drafts."""


def llama_server(*chunks: Any, types: str = "none,draft-simple", **paths: Answer) -> dict[str, Any]:
    """The script of a llama-server that streams these chunks (bytes as they are); `paths` replaces answers,
    by their names without a slash."""

    def complete(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": types}})
        return Answer(pieces=[chunk if isinstance(chunk, bytes) else event(chunk) for chunk in chunks])

    script: dict[str, Any] = {
        "/props": Answer(PROPS),
        "/v1/models": Answer(MODELS),
        "/slots": Answer([{"speculative": types != "none"}]),
        "/tokenize": Answer({"tokens": [5, 6, 7]}),
        "/apply-template": Answer({"prompt": "<user>Hello"}),
        "/completion": complete,
    }
    return script | {f"/{name}": answer for name, answer in paths.items()}
