"""Workers for tests: processes of `draftscope worker` on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Worker:
    endpoint: str
    process: subprocess.Popen[str]
    said: tuple[str, ...]  # on standard error, until it was ready


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def worker(*options: str, host: str = "127.0.0.1") -> Iterator[Worker]:
    """A running worker; killed at the end."""
    port = free_port()
    command = [sys.executable, "-m", "app", "worker", "--host", host, "--port", str(port), "--threads", "1"]
    process = subprocess.Popen([*command, *options], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said: list[str] = []
        while not said or f" at {host}:{port}" not in said[-1]:
            line = process.stderr.readline()
            assert line, f"the worker ended: {said}"
            said.append(line.rstrip("\n"))
        yield Worker(f"127.0.0.1:{port}", process, tuple(said))
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def limit_memory(pid: int, more: int) -> None:
    """Limit a process to `more` bytes than it has now, until `lift_limit`. Linux only."""
    import resource

    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more
    _, most = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, most))


def lift_limit(pid: int) -> None:
    import resource

    _, most = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
