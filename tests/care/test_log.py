"""The log file: bounded, private, and without what anybody wrote."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base.processes import bug_line, bug_words
from app.care.log import LONGEST, NAME, CrashFile, keep_log, last_lines, take_crashes

SECRET = "my secret question"
log = logging.getLogger("draftscope")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a log."""
    monkeypatch.setattr(logging, "raiseExceptions", True)
    handler = keep_log(tmp_path)
    yield tmp_path
    logging.getLogger().removeHandler(handler)
    handler.close()


def _fail(error: BaseException) -> None:
    raise error


def caught(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """The error as it is after it was raised, while `cause` was handled."""
    try:
        try:
            _fail(cause or error)
        except BaseException:
            _fail(error)
    except BaseException as found:
        return found
    raise AssertionError


@pytest.mark.parametrize("kind", [ValueError, KeyError, RuntimeError, UserWarning])
def test_a_bug_in_words_does_not_quote_its_data(kind: type[Exception]) -> None:
    words = bug_words(caught(kind(SECRET), LookupError(SECRET)))
    assert SECRET not in words
    assert kind.__name__ in words and "LookupError" in words and "in _fail" in words


def test_a_bug_in_words_keeps_what_names_the_program() -> None:
    assert "TypeError: f() takes no arguments" in bug_words(caught(TypeError("f() takes no arguments")))
    words = bug_words(caught(PermissionError(13, "Permission denied", SECRET)))
    assert "PermissionError: Permission denied" in words and SECRET not in words
    assert bug_line(caught(KeyError(SECRET))).startswith("KeyError at test_log.py:")


def test_a_bug_that_caused_itself_ends() -> None:
    first, second = caught(ValueError()), caught(KeyError())
    first.__cause__, second.__cause__ = second, first
    assert bug_words(first).count("ValueError") == 5


def test_the_log_is_private_and_quotes_nothing(kept: Path) -> None:
    log.error("It broke", exc_info=caught(ValueError(SECRET)))
    text = (kept / NAME).read_text()
    assert "It broke" in text and "in _fail" in text and SECRET not in text
    assert stat.S_IMODE((kept / NAME).stat().st_mode) == 0o600


def test_an_older_log_becomes_private(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("older\n")
    (tmp_path / NAME).chmod(0o644)
    handler = keep_log(tmp_path)
    try:
        log.error("newer")
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    assert (tmp_path / NAME).read_text().startswith("older\n")
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_the_log_stays_below_a_few_megabytes(kept: Path) -> None:
    for _ in range(250):
        log.error("x" * (LONGEST + 1000))
    files = list(kept.iterdir())
    assert len(files) == 3 and sum(file.stat().st_size for file in files) < 3_100_000
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert "(21,0" in last_lines(kept, 1)[0]


def test_the_last_lines_of_the_log(kept: Path) -> None:
    assert last_lines(kept, 5) == []
    for number in range(9):
        log.error("entry %d", number)
    assert [line[-7:] for line in last_lines(kept, 2)] == ["entry 7", "entry 8"]


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_how_a_process_died_is_found_once(kept: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from app.care.log import CrashFile\n"
        "crash = CrashFile(Path(sys.argv[1]))\n"
        "crash.close() if sys.argv[2] == 'well' else os.kill(os.getpid(), int(sys.argv[2]))"
    )
    ends = {
        how: subprocess.run(
            [sys.executable, "-c", program, str(kept), how], check=False, capture_output=True
        ).returncode
        for how in ("well", "9", "11")
    }
    assert ends == {"well": 0, "9": -9, "11": -11}
    (kept / f"crash-{os.getpid()}.txt").write_text("of a process that runs")
    assert take_crashes(kept) == ("Segmentation fault",)
    assert "line 3 in <module>" in (kept / NAME).read_text()
    assert take_crashes(kept) == ()
    assert [file.name for file in kept.glob("crash-*")] == [f"crash-{os.getpid()}.txt"]


def test_a_process_ends_well_where_its_crash_file_cannot_be_removed(kept: Path) -> None:
    crash = CrashFile(kept)
    (file,) = kept.glob("crash-*")
    file.unlink()
    file.mkdir()  # a disk that refuses
    crash.close()
    assert file.is_dir()
