"""A server that answers as the Hub does, and lies, stalls, cuts and refuses on demand. It has two origins, as
in reality: the Hub itself, which redirects to the server that has the bytes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from typing_extensions import override

SECRET = "signature-that-no-log-may-hold"
TOKEN = "hf_aTokenThatNobodyKnows"
BAD_TOKEN = "hf_aTokenThatIsNone"


@dataclass(frozen=True)
class Fault:
    """What happens to one request instead of a correct answer; the defaults do nothing."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()  # with `status` or `body`
    told: tuple[tuple[str, str], ...] = ()  # headers instead of a correct answer's; "" leaves one out
    raw: bytes | None = None  # sent in place of HTTP
    cut: int | None = None  # bytes of the body after which the connection ends
    reset: bool = False  # and with a reset, as when a cable is pulled: what was not read yet may be lost
    stall: float = 0.0  # seconds of silence after `cut` bytes, or before the answer
    pace: float = 0.0  # seconds between two pieces of the body
    no_ranges: bool = False
    wrong: bool = False  # other bytes of the same length
    longer: int = 0  # number of extra bytes
    body: bytes | None = None
    before: Callable[[], None] | None = None  # called first


SOUND = Fault()


@dataclass
class FakeRepo:
    files: dict[str, bytes]
    gated: bool = False
    allowed: bool = True  # whether a token opens it
    licence: str = "apache-2.0"
    architecture: str = "llama"
    lfs: bool = True
    downloads: int = 10
    history: int = 0  # changes the commit

    @property
    def commit(self) -> str:
        digest = hashlib.sha1(str(self.history).encode())
        for name, data in sorted(self.files.items()):
            digest.update(name.encode(errors="replace") + data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    kind: str  # "api", "resolve" or "cdn"
    method: str
    path: str
    headers: dict[str, str]
    at: float


@dataclass
class FakeHub:
    """The server. `faults[kind]` holds the faults of the next requests of that kind, in order."""

    repos: dict[str, FakeRepo] = field(default_factory=dict)
    redirects: bool = True
    asked: list[Asked] = field(default_factory=list)
    faults: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    always: dict[str, Fault] = field(default_factory=dict)
    etag: str | None = None  # instead of the true one
    address: str = ""
    cdn: str = ""

    def requests(self, kind: str, method: str = "GET") -> list[Asked]:
        return [request for request in self.asked if (request.kind, request.method) == (kind, method)]

    def fault(self, kind: str) -> Fault:
        waiting = self.faults[kind]
        return waiting.popleft() if waiting else self.always.get(kind, SOUND)

    def clear(self) -> None:
        self.asked.clear()
        self.faults.clear()
        self.always.clear()


@contextlib.contextmanager
def running() -> Iterator[FakeHub]:
    """Serve on loopback, on two free ports."""
    hub = FakeHub()
    servers = [_server(hub, port_is_cdn) for port_is_cdn in (False, True)]
    hub.address, hub.cdn = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed in mid-answer here, which is expected."""


def _server(hub: FakeHub, cdn: bool) -> _Server:
    class Handler(_Handler):
        fake = hub
        is_cdn = cdn

    return _Server(("127.0.0.1", 0), Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0
    disable_nagle_algorithm = True  # else a body waits 40 ms for the receipt of its headers
    fake: FakeHub
    is_cdn: bool

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        kind = "cdn" if self.is_cdn else "api" if parts.path.startswith("/api/") else "resolve"
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.fake.asked.append(Asked(kind, self.command, self.path, headers, time.monotonic()))
        # Only answers with a body are cut or stalled; HEAD has a list of its own.
        fault = self.fake.fault("head" if self.command == "HEAD" else kind)
        if fault.before is not None:
            fault.before()
        if fault.stall and fault.cut is None:
            time.sleep(fault.stall)
        if fault.raw is not None:
            self._write(fault.raw, fault.pace)
            self.close_connection = True
        elif fault.status:
            self._send(fault.status, fault.body or b"", dict(fault.headers), fault)
        elif fault.body is not None:
            self._send(200, fault.body, {"Content-Type": "application/json", **dict(fault.headers)}, fault)
        elif kind == "cdn":
            self._cdn(parts.path, fault)
        elif kind == "api":
            self._api(unquote(parts.path), parse_qs(parts.query))
        else:
            self._resolve(unquote(parts.path), fault)

    # ------------------------------------------------------------------------------ answers

    def _api(self, path: str, query: dict[str, list[str]]) -> None:
        if path == "/api/whoami-v2":
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._refuse(401, "", "Invalid username or password.")
            else:
                access = {"displayName": "draftscope", "role": "read"}
                self._json({"name": "tester", "type": "user", "auth": {"accessToken": access}})
        elif path == "/api/models":
            words = query.get("search", [""])[0].lower().split()
            found = [
                self._info(name, query)
                for name, repo in sorted(self.fake.repos.items(), key=lambda named: -named[1].downloads)
                if all(word in name.lower() for word in words)
            ]
            self._json(found[: int(query.get("limit", ["1000"])[0])])
        else:
            name = path.removeprefix("/api/models/").split("/revision/")[0]
            if name in self.fake.repos:
                self._json(self._info(name, query))
            else:
                self._refuse(401, "RepoNotFound", "Repository not found")

    def _info(self, name: str, query: dict[str, list[str]]) -> dict[str, Any]:
        repo = self.fake.repos[name]
        siblings: list[dict[str, Any]] = [{"rfilename": file} for file in repo.files]
        if "blobs" in query:
            for sibling in siblings:
                data = repo.files[sibling["rfilename"]]
                sibling |= {"size": len(data), "blobId": hashlib.sha1(data).hexdigest()}
                if repo.lfs:
                    sha256 = hashlib.sha256(data).hexdigest()
                    sibling["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 134}
        return {
            "id": name,
            "modelId": name,
            "sha": repo.commit,
            "gated": "manual" if repo.gated else False,
            "downloads": repo.downloads,
            "likes": 3,
            "lastModified": "2026-05-01T10:00:00.000Z",
            "tags": ["gguf", f"license:{repo.licence}"],
            "gguf": {"total": 1_700_000_000, "architecture": repo.architecture, "context_length": 8192},
            "siblings": siblings,
        }

    def _resolve(self, path: str, fault: Fault) -> None:
        name, _, rest = path.strip("/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        repo = self.fake.repos.get(name)
        if repo is None:
            return self._refuse(401, "RepoNotFound", "Repository not found")
        token = self.headers.get("Authorization")
        if repo.gated and token is None:
            return self._refuse(401, "GatedRepo", f"Access to model {name} is restricted.")
        if repo.gated and not (repo.allowed and token == f"Bearer {TOKEN}"):
            return self._refuse(403, "GatedRepo", f"Access to model {name} is restricted.")
        if revision not in ("main", repo.commit):
            return self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if file not in repo.files:
            return self._refuse(404, "EntryNotFound", "Entry not found")
        data = repo.files[file]
        etag = self.fake.etag or hashlib.sha256(data).hexdigest()
        headers = {"X-Repo-Commit": repo.commit, "ETag": f'"{etag}"'}
        if self.fake.redirects:
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(data))}
            headers["Location"] = f"{self.fake.cdn}/{quote(name)}/{quote(file)}?Signature={SECRET}"
            return self._send(302, b"Found", headers, fault)
        return self._bytes(data, fault, headers)

    def _cdn(self, path: str, fault: Fault) -> None:
        owner, name, file = unquote(path).lstrip("/").split("/", 2)
        self._bytes(self.fake.repos[f"{owner}/{name}"].files[file], fault, {"ETag": '"of-the-cdn"'})

    # ------------------------------------------------------------------------------ sending

    def _bytes(self, data: bytes, fault: Fault, headers: dict[str, str]) -> None:
        if fault.wrong:
            data = bytes(byte ^ 0x5A for byte in data)
        data += b"x" * fault.longer
        asked = self.headers.get("Range")
        start = 0 if asked is None or fault.no_ranges else int(asked.removeprefix("bytes=").rstrip("-"))
        if start > len(data):
            self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            return
        if asked is not None and not fault.no_ranges:
            headers = headers | {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        self._send(206 if "Content-Range" in headers else 200, data[start:], headers, fault)

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message}
        body = json.dumps({"error": message}).encode()
        self._send(status, body, {name: value for name, value in headers.items() if value})

    def _send(self, status: int, body: bytes, headers: dict[str, str], fault: Fault = SOUND) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers | dict(fault.told)).items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault.cut is not None:
            self._write(body[: fault.cut], fault.pace)
            if fault.stall:
                time.sleep(fault.stall)
            if fault.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self._write(body, fault.pace)

    def _write(self, body: bytes, pace: float) -> None:
        step = 4096 if pace else max(len(body), 1)
        for at in range(0, len(body), step):
            self.wfile.write(body[at : at + step])
            if pace:
                time.sleep(pace)
