"""Threads that cannot be started: an error, never an endless wait."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.workers import ROOT

SHORT = """
import resource, sys, threading
from app.base.processes import start
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
begun = threading.Event()
try:
    start(threading.Thread(target=begun.set))
except MemoryError:
    print("no room")
else:
    print(begun.wait(60))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on addresses is Linux's")
@pytest.mark.parametrize(("more", "said"), [(0, "no room"), (2**12, "no room"), (2**28, "True")])
def test_a_thread_begins_or_there_is_no_room_for_it(more: int, said: str) -> None:
    command = [sys.executable, "-c", SHORT, str(more)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout.strip() == said, ended.stderr
