"""Workers are checked before llama.cpp uses them: it would end the process, or wait for ever."""

from __future__ import annotations

import pickle
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.engine import Engine, ModelOptions
from app.engine.devices.workers import Endpoint, WorkerError, check_worker, lost_workers
from app.engine.native import list_devices
from tests.files.tiny import Tiny
from tests.workers import free_port, worker

SHORT = 0.3


@pytest.mark.parametrize("text", ["", "host", ":1", "host:", "host:0", "host:65536", "host:-1", "host:１"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(WorkerError, match="HOST:PORT"):
        Endpoint.parse(text)


@pytest.mark.parametrize("text", ["::1:50052", "[::1]:50052", "http://host:1", "user@host:1", "a b:1"])
def test_what_llama_cpp_cannot_reach_is_refused(text: str) -> None:
    with pytest.raises(WorkerError, match="IPv4"):
        Endpoint.parse(text)


def test_addresses() -> None:
    assert Endpoint.parse(" box.local:7 ") == Endpoint("box.local", 7)
    assert str(Endpoint("a", 1)) == "a:1"
    loopback = {
        "127.0.0.1": True,
        "localhost": True,
        "127.9.9.9": True,
        "0.0.0.0": False,
        "192.168.0.1": False,
    }
    assert {host: Endpoint(host, 1).is_loopback for host in loopback} == loopback


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], str]]:
    """Serve the given bytes to one program; returns the address."""
    sockets = []

    def serve(answer: bytes) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        sockets.append(server)

        def work() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(64)
                connection.sendall(answer)

        threading.Thread(target=work, daemon=True).start()
        return "127.0.0.1:%d" % server.getsockname()[1]  # noqa: UP031

    yield serve
    for opened in sockets:
        opened.close()


def test_where_nobody_listens() -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    with pytest.raises(WorkerError, match="There is no worker at") as refused:
        check_worker(endpoint)
    assert "draftscope worker --host 127.0.0.1" in refused.value.hint
    assert refused.value.endpoint == endpoint
    assert pickle.loads(pickle.dumps(refused.value)).endpoint == endpoint
    assert lost_workers((endpoint,)) == (endpoint,)


def test_who_is_no_worker(answering: Callable[[bytes], str]) -> None:
    for answer in (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", struct.pack("<Q", 28)):
        with pytest.raises(WorkerError, match="is not a llama"):
            check_worker(answering(answer))


@pytest.mark.parametrize("version", [(6, 0), (8, 0), (7, 9)])
def test_another_version(answering: Callable[[bytes], str], version: tuple[int, int]) -> None:
    said = struct.pack("<QBBBB", 28, *version, 0, 0) + bytes(24)
    with pytest.raises(WorkerError, match=rf"version {version[0]}\.{version[1]}") as refused:
        check_worker(answering(said))
    assert "same version" in refused.value.hint


def test_one_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = time.monotonic()
        with pytest.raises(WorkerError, match="does not answer"):
            check_worker("127.0.0.1:%d" % server.getsockname()[1], SHORT)  # noqa: UP031
        assert SHORT <= time.monotonic() - started < 100 * SHORT


def test_a_worker_answers_one_program_at_a_time(tiny_file: Callable[[Tiny], Path]) -> None:
    with worker() as running:
        check_worker(running.endpoint)
        assert lost_workers((running.endpoint,)) == ()
        options = ModelOptions(str(tiny_file(Tiny())), rpc=running.endpoint)
        with Engine(options):
            with pytest.raises(WorkerError, match="does not answer"):
                check_worker(running.endpoint, SHORT)
            # The program that it serves is not disturbed.
            (found, *_rest) = list_devices((running.endpoint,))
            assert (found.name, found.kind, found.endpoint) == ("RPC0", "worker", running.endpoint)
            assert 0 < found.free <= found.total
        check_worker(running.endpoint)


def test_the_devices_of_this_machine() -> None:
    *_others, cpu = list_devices()
    assert (cpu.name, cpu.kind, cpu.backend, cpu.endpoint) == ("CPU", "CPU", "CPU", "")
    assert 0 < cpu.free < cpu.total  # llama.cpp reports all of it as free
