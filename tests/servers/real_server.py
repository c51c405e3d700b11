"""A real llama-server, where one was built: `make peer` keeps it beside the wheel that .venv has."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.engine.explain.llama_command import llama_command
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling

ROOT = Path(__file__).parents[2]
NAME = "llama-server"
VARIABLE = "DRAFTSCOPE_LLAMA_SERVER"
_READY_SECONDS = 100.0
_CONTEXT = 1024
STRATEGIES = (
    "draft-simple:n_max=4",
    "ngram-simple:size_n=3:size_m=5",
    "ngram-map-k:size_n=3:size_m=5",
    "ngram-map-k4v:size_n=3:size_m=5",
    "ngram-mod:n_match=4:n_min=2:n_max=8",
    "ngram-cache",
    "ngram-simple:size_n=3:size_m=5+draft-simple:n_max=4",
)
"""Every kind of draft that it has."""
STORY = "The fox went to the river. The owl sat in the tree. The fox saw the owl and sang a song. "


def find_server() -> Path | None:
    """The program that DRAFTSCOPE_LLAMA_SERVER names, else the one that `make peer` keeps; None without."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    try:
        notes = json.loads((ROOT / ".venv" / "draftscope-setup.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wheels = Path(os.environ.get("DRAFTSCOPE_WHEELS") or cache / "draftscope" / "wheels")
    kept = wheels / notes.get("wheel", "") / "peer" / NAME
    return kept if kept.is_file() else None


@contextmanager
def running(
    program: Path, target: Path, draft: Path | None, strategy: str, slots: int = 1, draft_kind: str = ""
) -> Iterator[str]:
    """The address of a server with the command that the window copies for this strategy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [ModelOptions(str(path), threads=1) if path else None for path in (target, draft)]
    command = llama_command(
        StrategySpec.parse(strategy),
        options[0],
        options[1],
        Sampling(),
        64,
        _CONTEXT * slots,
        draft_kind=draft_kind,
    )
    words = [str(program), *shlex.split(command.text)[1:], "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*words, "-np", str(slots)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(process, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], address: str) -> None:
    """Wait until a server has loaded its models."""
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"llama-server ended with {process.returncode}"
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=10):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise TimeoutError("llama-server did not become ready")
