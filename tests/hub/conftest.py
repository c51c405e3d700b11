"""A Hub on loopback, with a cache, a home and a token file for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

from app.hub.cache import Cache
from app.hub.hub import Hub
from tests.hub.server import FakeHub, running


@pytest.fixture(scope="session")
def _server() -> Iterator[FakeHub]:
    with running() as server:
        yield server


@pytest.fixture
def server(_server: FakeHub) -> FakeHub:
    """The server, with nothing in it."""
    _server.clear()
    _server.repos.clear()
    _server.redirects, _server.etag = True, None
    return _server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Child processes get their home from the environment; this process read it at import."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
    monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(folder / "stored_tokens"))
    close_session()
    yield folder
    close_session()


@pytest.fixture
def hub(server: FakeHub) -> Hub:
    return Hub(endpoint=server.address)


@pytest.fixture
def cache(home: Path) -> Cache:
    return Cache(home / "hub")


@pytest.fixture
def left(cache: Cache) -> Callable[[], list[str]]:
    """Everything in the cache, including folders."""

    def look() -> list[str]:
        return sorted(str(path.relative_to(cache.folder)) for path in cache.folder.rglob("*"))

    return look
