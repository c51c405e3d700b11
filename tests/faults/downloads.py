"""Downloads from a server that cuts, stalls and lies, with the real client; then, with new
connections, from the same server, honest.

A "file" of this kind is a plan: what happens to which of the client's requests.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from unittest.mock import patch
from urllib.request import urlopen

import msgspec
from huggingface_hub import close_session

from app.hub.downloads.fetch import Fetcher
from app.hub.downloads.item import DownloadBegun, DownloadJob, FileDone, ItemFile, Patience, Report
from app.hub.errors import HubError
from app.hub.hub import Hub
from app.hub.repo import read_repo
from tests.faults.campaign import Fate, checked
from tests.faults.damage import damaged, damaged_text
from tests.hub.server import SECRET, FakeRepo, Fault, running

_REPO, _FILE = "owner/model-GGUF", "model-Q4_K_M.gguf"
_DATA = random.Random(1).randbytes(200_000)
_PATIENCE = Patience(stall=0.5, first_wait=0.0, longest_wait=0.0, attempts=4)
_LONGEST = 60.0  # seconds for both downloads, on a busy machine
_STATUS = (200, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 408, 410, 416, 418, 429, 500, 503, 599)
_ADDRESSES = (
    "", "/", "//", "http://", "http://127.0.0.1:9/x", "https://127.0.0.1:9/x", "file:///etc/passwd",
    "ftp://127.0.0.1/x", "javascript:1", "http://[", "http://127.0.0.1:99999/x", "http://\x7f", "x" * 10_000,
    "HUB/a/b/resolve/main/c",
)  # fmt: skip
_NUMBERS = ("", "-1", "0", "1", "7.5", "1e9", str(2**63), "9" * 5000, "many", "199999", "200001", "200000")
_TAGS = (
    "",
    '""',
    "*",
    '"../../../up"',
    '"' + "0" * 64 + '"',
    'W/"x"',
    '"' + "x" * 300 + '"',
    '"a/b"',
    '"\x80"',
)
_RANGES = (
    "",
    "bytes 0-9/10",
    "bytes 5-4/200000",
    "bytes */200000",
    "bytes 0-199999/*",
    "bytes -1--2/-3",
    "x",
)
_RAW = (
    b"",
    b"\r\n\r\n",
    b"HELO\r\n",
    b"\0" * 500,
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000,
    b"HTTP/9 x\r\n",
)
_LIES: dict[str, dict[str, tuple[str, ...]]] = {
    "head": {
        "ETag": _TAGS,
        "X-Linked-Etag": _TAGS,
        "X-Linked-Size": _NUMBERS,
        "Content-Length": _NUMBERS,
        "X-Repo-Commit": ("", "main", "../up", "0" * 40, "x" * 300),
        "Location": _ADDRESSES,
    },
    "cdn": {
        "Content-Length": _NUMBERS,
        "Content-Range": _RANGES,
        "Content-Encoding": ("gzip", "br", "identity", "nonsense"),
        "Transfer-Encoding": ("chunked", "nonsense"),
        "ETag": _TAGS,
    },
}


class Happening(msgspec.Struct, omit_defaults=True):
    """What happens to a request; the fields are those of `Fault`."""

    kind: str  # of request: "api", "head" or "cdn"
    status: int = 0
    told: tuple[tuple[str, str], ...] = ()
    raw: bytes | None = None
    cut: int | None = None
    reset: bool = False
    stall: float = 0.0
    no_ranges: bool = False
    wrong: bool = False
    longer: int = 0
    body: bytes | None = None


class Plan(msgspec.Struct):
    """What happens in order, and how this Hub hands out files."""

    happens: tuple[Happening, ...]
    always: bool  # the last of each kind happens to all requests that follow
    redirects: bool
    lfs: bool  # the listing has checksums


class Downloads:
    """One server; each plan has a cache of its own."""

    name = "downloads"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self._open = ExitStack()
        own = {"NO_PROXY": "127.0.0.1", "HF_TOKEN": "", "HF_HOME": str(self._folder / "home")}
        self._open.enter_context(patch.dict(os.environ, own))
        close_session()  # of another environment
        self._server = self._open.enter_context(running())
        self._server.repos[_REPO] = FakeRepo({_FILE: _DATA})
        with urlopen(f"{self._server.address}/api/models/{_REPO}/revision/main?blobs=true") as answer:
            self._listing = answer.read()

    def make(self, random: Random) -> bytes:
        cuts = random.random() < 0.5
        many = random.choice((1, 1, 2, 3, 5))
        happens = tuple(_cut(random) if cuts else self._lie(random) for _ in range(many))
        always = not cuts and random.random() < 0.3
        return msgspec.json.encode(Plan(happens, always, random.random() < 0.8, random.random() < 0.7))

    def _lie(self, random: Random) -> Happening:
        kind = random.choice(("api", "head", "head", "cdn", "cdn"))
        match random.randrange(8):
            case 0:
                return Happening(kind, status=random.choice(_STATUS), body=random.choice((b"", b"<html>")))
            case 1:
                return Happening(kind, raw=random.choice(_RAW))
            case 2 if kind == "cdn":
                return Happening(kind, wrong=True)
            case 3 if kind == "cdn":
                return Happening(kind, longer=random.choice((1, 1000)), no_ranges=random.random() < 0.5)
        if kind == "api":
            damage = random.choice((damaged, damaged_text, damaged_text))
            return Happening(kind, body=damage(self._listing, random))
        lies = _LIES[kind]
        told = random.sample(list(lies), random.choice((1, 1, 2)))
        return Happening(kind, told=tuple((name, random.choice(lies[name])) for name in told))

    def open(self, data: bytes) -> Fate:
        plan = msgspec.json.decode(data, type=Plan)
        self._server.clear()
        self._server.redirects, self._server.repos[_REPO].lfs = plan.redirects, plan.lfs
        for happening in plan.happens:
            kind = happening.kind if plan.redirects or happening.kind != "cdn" else "resolve"
            self._server.faults[kind].append(self._fault(happening))
            if plan.always:
                self._server.always[kind] = self._fault(happening)
        inside = self._folder / "inside"
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir()
        began = time.monotonic()
        try:
            self._bring(inside)
            fate = Fate.OPENED
        except HubError as error:
            checked(error)
            assert SECRET not in str(error)
            fate = Fate.REFUSED
        self._server.clear()
        close_session()  # it may hold a connection that is about to be cut
        assert self._bring(inside) == _DATA, "the honest server's file is not the one that is there"
        assert [path.name for path in inside.iterdir()] == ["cache"], "something lies outside the cache"
        assert not list(inside.rglob("*.incomplete"))
        assert time.monotonic() - began < _LONGEST
        return fate

    def _fault(self, happening: Happening) -> Fault:
        fields = msgspec.structs.asdict(happening)
        del fields["kind"]
        fields["told"] = tuple(
            (name, value.replace("HUB", self._server.address)) for name, value in happening.told
        )
        return Fault(**fields)

    def _bring(self, folder: Path) -> bytes:
        """Look the file up and fetch it, as the window does; returns its bytes. Raises HubError."""
        repo = read_repo(Hub(endpoint=self._server.address), _REPO)
        file = repo.chosen().files[0]
        item = ItemFile(file.name, file.size, file.sha256)
        job = DownloadJob(_REPO, "main", (item,), str(folder / "cache"), self._server.address, _PATIENCE, "")
        reports: list[Report] = []
        Fetcher(job, reports.append, sleep=lambda _seconds: None).run()
        (done,) = (report for report in reports if isinstance(report, FileDone))
        data = Path(done.path).read_bytes()
        begun = [report for report in reports if isinstance(report, DownloadBegun)][-1]
        listed = file.sha256 if file.size == begun.size else ""
        for sha256 in (begun.etag, listed):
            assert len(sha256) != 64 or hashlib.sha256(data).hexdigest() == sha256, (
                "other bytes than were told"
            )
        return data

    def close(self) -> None:
        self._open.close()
        close_session()
        shutil.rmtree(self._folder)


def _cut(random: Random) -> Happening:
    stall = random.choice((0.0, 0.0, 0.0, 0.8))
    cut, no_ranges = random.randrange(len(_DATA)), random.random() < 0.1
    return Happening("cdn", cut=cut, reset=cut % 2 == 0, stall=stall, no_ranges=no_ranges)
