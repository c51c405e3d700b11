"""First start, chat and compare without any network, and without trying to use one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WALK = "tests/offline/first_start.py"
ALONE = ("unshare", "--map-root-user", "--net")  # a network namespace: no interfaces, loopback down

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def namespace() -> tuple[str, ...]:
    """The prefix of a command that runs it without a network."""
    if shutil.which(ALONE[0]) is None:
        pytest.skip("there is no unshare here, which makes network namespaces (Linux, util-linux)")
    tried = subprocess.run([*ALONE, "true"], capture_output=True, text=True, timeout=20, check=False)
    if tried.returncode:
        pytest.skip(f"network namespaces are not allowed here: {tried.stderr.strip()}")
    return ALONE


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "network.txt"


@pytest.fixture
def run(namespace: tuple[str, ...], tmp_path: Path, log: Path) -> Run:
    """Runs Python without a network, a home of its own; `log` gets what it asks of a network."""

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        own = {
            "DRAFTSCOPE_HOME": str(tmp_path / "home"),
            "NETWORK_LOG": str(log),
            "PYTHONPATH": str(ROOT / "tests" / "offline"),
            "QT_QPA_PLATFORM": "offscreen",
        }
        return subprocess.run(
            [*namespace, sys.executable, *words],
            cwd=ROOT,
            env=os.environ | own,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )

    return start


def asked(log: Path) -> list[str]:
    """The network calls of all processes."""
    return [line for line in log.read_text().splitlines() if " began " not in line]


def test_first_start_chat_and_compare_need_no_network(
    run: Run, log: Path, demo_pair: tuple[Path, Path]
) -> None:
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", WALK)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    processes = {line.split()[0] for line in log.read_text().splitlines()}
    assert len(processes) >= 2, "the window and the engine"
    assert asked(log) == []


def test_what_is_asked_of_a_network_is_noticed_and_refused(run: Run, log: Path) -> None:
    """Else the test above could not fail."""
    for call in ("socket.create_connection(('192.0.2.1', 9), 5)", "socket.getaddrinfo('example.org', 80)"):
        done = run("-c", f"import socket; {call}")
        assert done.returncode == 1 and "Traceback" in done.stderr
    words = [line.split(maxsplit=1)[1] for line in asked(log)]
    assert {"socket.connect ('192.0.2.1', 9)", "socket.getaddrinfo example.org"} <= set(words)
