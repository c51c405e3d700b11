"""`draftscope devices` and `draftscope worker`: what they print, refuse and serve."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from app.engine.devices.workers import check_worker
from tests.commands import Command
from tests.files.tiny import Tiny
from tests.workers import free_port, worker

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


@pytest.fixture
def six(tiny_file: Callable[[Tiny], Path]) -> Path:
    return tiny_file(Tiny(name="six", n_layers=6, n_heads=2, n_ctx=512))


def assert_ruled(header: str, rule: str) -> None:
    """Every column of a table has a rule as wide as the column."""
    rules = [match.span() for match in re.finditer("-+", rule)]
    names = [match.span() for match in re.finditer(r"\S+", header)]
    assert len(rules) == len(names)
    assert all(low <= first and last <= high for (low, high), (first, last) in zip(rules, names, strict=True))


def test_the_devices_of_this_machine(command: Command) -> None:
    ended = command("devices")
    assert (ended.code, ended.err) == (0, "")
    header, rule, *rows = ended.out.splitlines()
    assert_ruled(header, rule)
    assert header.split() == ["DEVICE", "KIND", "BACKEND", "FREE", "TOTAL", "DESCRIPTION"]
    assert any(row.startswith("CPU ") for row in rows)
    assert "make run GPU=" in ended.out


def test_workers_memory_and_fit(command: Command, six: Path, pair_files: tuple[Path, Path]) -> None:
    with worker() as first, worker() as second:
        rpc = f"{first.endpoint},{second.endpoint}"
        words = ["--rpc", rpc, "--target", six, "--draft", pair_files[1]]
        plain = command("devices", *words, "--n-gpu-layers", 4, "--tensor-split", "3,1")
        assert (plain.code, plain.err) == (0, "")
        assert first.endpoint in plain.out and second.endpoint in plain.out
        rows = [line.split() for line in plain.out.splitlines() if line.startswith(("target", "draft "))]
        assert [row[:3] for row in rows if row[0] == "target"] == [
            ["target", "RPC0", "3"],
            ["target", "RPC1", "1"],
            ["target", "CPU", "3"],
        ]
        assert "has 4 of 7 layers on devices" in plain.out
        lines = plain.out.splitlines()
        header = next(at for at, line in enumerate(lines) if line.startswith("MODEL"))
        assert_ruled(*lines[header : header + 2])
        fitted = command("devices", *words, "--fit")
        assert "Fits: --n-gpu-layers -1 --n-gpu-layers-draft -1" in fitted.out
        numbers = json.loads(command("devices", *words, "--json").out)
        assert [device["name"] for device in numbers["devices"]] == ["RPC0", "RPC1", "CPU"]
        assert numbers["target"]["most_layers"] == 7 and numbers["draft"] is not None
        # The printed options work.
        run = command("run", *words, "--prompt", "abc", "--max-tokens", 4, "--strategy", "draft-simple")
        assert run.code == 0 and run.out.strip()


def test_what_fits_nowhere_has_no_options_and_ends_with_1(
    command: Command, demo_pair: tuple[Path, Path]
) -> None:
    words = ("--ctx-size", 2**24, "--cache-type-k", "f32", "--cache-type-v", "f32")  # half a TB
    ended = command("devices", "--target", demo_pair[0], *words, "--fit")
    assert ended.code == 1
    assert "Does not fit: " in ended.out and "Fits: " not in ended.out
    assert ended.err.startswith("draftscope devices: No number of layers fits. Choose a smaller context")
    assert ended.err.count("\n") == 1


def test_what_cannot_be_listed(command: Command, tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    for words, code, said in [
        (("--rpc", nobody), 1, f"There is no worker at {nobody}"),
        (("--rpc", "x"), 1, "HOST:PORT"),
        (("--fit",), 2, "need a target"),
        (("--target", tmp_path / "gone.gguf"), 1, "does not exist"),
        (("--device", "XPU9", "--target", tmp_path / "gone.gguf"), 1, "does not exist"),
    ]:
        ended = command("devices", *words)
        assert (ended.code, ended.err.count("\n")) == (code, 1)
        assert said in ended.err


def test_a_worker_says_where_it_is_and_warns_where_others_reach_it() -> None:
    with worker() as served:
        check_worker(served.endpoint)
        (line,) = served.said
        assert line.startswith("draftscope worker: CPU (") and line.endswith(f" at {served.endpoint}")
    with worker(host="0.0.0.0") as served:
        check_worker(served.endpoint)
        warning = served.said[0]
        assert "WARNING" in warning and "no protection of its own" in warning


@on_posix
def test_ctrl_c_ends_a_worker() -> None:
    with worker() as served:
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(30) == 130


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--port", "0"), 2, "is not the address"),
        (("--port", "99999"), 2, "is not the address"),
        (("--host", "::1"), 2, "IPv4"),
        (("--threads", "-1"), 2, "whole number"),
        (("--device", "XPU9"), 2, "There is no device XPU9"),
        (("--host", "nowhere.invalid"), 1, "not an address of this machine"),
    ],
)
def test_what_a_worker_refuses(command: Command, words: tuple[str, ...], code: int, said: str) -> None:
    ended = command("worker", *words)
    assert ended.code == code
    assert said in ended.err.splitlines()[-1]


def test_a_port_that_is_taken(command: Command) -> None:
    with worker() as served:
        ended = command("worker", "--port", served.endpoint.split(":")[1])
        assert ended.code == 1 and "cannot be served" in ended.err
