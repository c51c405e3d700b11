"""Repositories on the Hub for tests, and a pair of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.hub.cache import Cache
from app.hub.catalogue import CataloguePair, Entry
from app.hub.errors import HubError
from app.hub.repo import HubFile
from tests.hub.server import FakeHub, FakeRepo

SMALL, LARGE = b"GGUF" * 10, b"GGUF" * 100
PAIR = CataloguePair(
    "id",
    "title",
    "good for tests",
    (Entry("owner/Qwen-GGUF", "q.gguf", 1, role="draft"), Entry("owner/Llama-GGUF", "Llama-Q8_0.gguf", 1)),
)


def in_cache(cache: Cache, repo: str, name: str, size: int = 0, sha256: str = "") -> Path | None:
    """Where one file of a repository is in the cache; None if it is not there."""
    return cache.find_first(repo, [HubFile(name, size, sha256)])


def stock(server: FakeHub) -> None:
    """Put repositories on the Hub."""
    server.repos["owner/Llama-GGUF"] = FakeRepo(
        {"Llama-Q8_0.gguf": LARGE, "Llama-Q4_K_M.gguf": SMALL, "README.md": b"", "mmproj-F16.gguf": SMALL},
        licence="llama3.2",
        downloads=500,
    )
    server.repos["other/Llama-small-GGUF"] = FakeRepo({"a.gguf": SMALL}, gated=True, downloads=900)
    server.repos["owner/Qwen-GGUF"] = FakeRepo({"q.gguf": SMALL})


def trouble(work: Callable[[], object]) -> HubError:
    """The HubError that `work` raises."""
    with pytest.raises(HubError) as raised:
        work()
    return raised.value
