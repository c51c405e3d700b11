"""What set-up says where it cannot go on: a sentence, and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "packaging" / "setup"
PYTHON_2 = shutil.which("python2.7")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the Makefile's set-up is for Linux and macOS")


def said(action: str, *args: str, **environment: str) -> list[str]:
    """The lines that set-up ends with."""
    code = f"import sys; import console, native_build, steps; sys.exit(steps.guarded(lambda: {action}))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *args],
        cwd=SETUP,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("number", ["EACCES", "EROFS"])
def test_a_folder_of_another_user_is_named(number: str) -> None:
    raising = f"(_ for _ in ()).throw(OSError(__import__('errno').{number}, 'x', '/a/b'))"
    first, hint = said(f"next({raising})")
    assert first == "set-up: /a/b cannot be written."
    assert "chown" in hint and "DRAFTSCOPE_WHEELS" in hint


def test_a_full_disk_is_said() -> None:
    first, hint = said("next((_ for _ in ()).throw(OSError(__import__('errno').ENOSPC, 'x')))")
    assert first == "set-up: The disk is full." and "Free" in hint


def test_a_program_that_may_not_write_is_no_unknown_failure() -> None:
    program = "print(\"Error: [Errno 13] Permission denied: '/a/b/.venv'\"); raise SystemExit(1)"
    first, _ = said("console.run([sys.executable, '-c', sys.argv[1]])", program)
    assert first == "set-up: /a/b/.venv cannot be written."


def test_a_build_says_how_far_it_is_and_how_long_it_takes_still() -> None:
    code = (
        "import itertools, time; from console import Progress\n"
        "seconds = itertools.count(0, 8); time.monotonic = lambda: next(seconds)\n"
        "progress = Progress('compiling')\n"
        "for done in range(1, 41): progress(f'[{done}/40] cc x.c'); progress('a warning')"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=SETUP, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.splitlines() == [
        "set-up: compiling, 1 of 40",
        "set-up: compiling, 10 of 40, about 3 min left",
        "set-up: compiling, 20 of 40, about 2 min left",
        "set-up: compiling, 30 of 40, about 70 s left",
        "set-up: compiling, 40 of 40",
    ]


def test_a_bug_keeps_its_traceback() -> None:
    assert "Traceback" in said("next((_ for _ in ()).throw(OSError(22, 'x')))")[0]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="it needs another user")
def test_a_user_without_a_home_folder_is_told() -> None:
    code = (
        "import os, sys; os.environ.pop('HOME', None); os.environ.pop('XDG_CACHE_HOME', None);"
        "os.environ.pop('DRAFTSCOPE_WHEELS', None); import native_build, steps; os.setuid(54321);"
        "sys.exit(steps.guarded(native_build.wheels_folder))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=SETUP, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("set-up: This user has no home folder."), done.stderr


@pytest.mark.skipif(PYTHON_2 is None, reason="there is no Python 2")
def test_python_2_is_told_what_it_is() -> None:
    assert PYTHON_2 is not None
    command = [PYTHON_2, str(SETUP / "bootstrap.py"), "app"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "pyenv" in done.stderr:
        pytest.skip("pyenv names a Python 2 that it does not start")
    assert done.returncode == 1 and "needs Python 3.11 or later" in done.stderr, done.stderr
