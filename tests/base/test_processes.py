"""Child processes: where they come from, and what they know of their parent."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection

import psutil
import pytest

from app.base.processes import Child
from tests.processes import started

PATIENCE = 60.0


def tell(connection: Connection, name: str) -> None:
    connection.send_bytes(os.environ.get(name, "").encode())
    with suppress(EOFError):
        connection.recv_bytes()  # until the test closes the pipe


@pytest.mark.parametrize("forks", [True, False])
def test_a_child_has_the_environment_of_now(monkeypatch: pytest.MonkeyPatch, forks: bool) -> None:
    monkeypatch.setattr("app.base.processes._FORKS", forks)
    for value in ("one", "two"):  # the server of processes is there before the second
        monkeypatch.setenv("DRAFTSCOPE_TOLD", value)
        child = Child("a child", tell, "DRAFTSCOPE_TOLD")
        assert child.hear(bytes.decode) == value
        assert psutil.Process(child.pid) in started()
        child.connection.close()
        assert child.end(PATIENCE) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only there are children forked")
def test_a_child_outlives_the_server_and_another_server_takes_its_place() -> None:
    first = Child("a child", tell, "")
    assert first.hear(bytes.decode) == ""
    server = psutil.Process(first.pid).parent()
    assert server is not None and server.pid != os.getpid()
    server.send_signal(signal.SIGKILL)
    while server.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    second = Child("a child", tell, "")
    assert second.hear(bytes.decode) == ""
    assert psutil.Process(first.pid).is_running()
    waiting = psutil.Process(first.pid)
    for child in (first, second):
        child.connection.close()
    psutil.wait_procs([waiting], PATIENCE)
    assert second.end(PATIENCE) == 0  # its server takes note of the end before it says how the process ended
