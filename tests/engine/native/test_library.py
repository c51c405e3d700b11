"""llama.cpp's library: when it is loaded, what it logs, and the flag that stops it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.engine.devices.memory import cores, default_threads, threads_for
from app.engine.native import AbortFlag, system_info
from app.engine.native.library import captured_log, libgomp, log
from tests.engine.native.test_model import refusal

ROOT = Path(__file__).parents[3]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_window_can_use_the_engines_types_without_the_library() -> None:
    modules = (
        "errors, params, strategy, types, process.host, process.messages, record.recheck, record.stats, "
        "record.trace, loop.text"
    )
    imports = ", ".join(f"app.engine.{name}" for name in modules.split(", "))
    code = f"import sys, {imports}; print('llama_cpp' in sys.modules)"
    assert python(code) == "False"


def test_llama_cpp_is_silent_on_standard_error(pair_files: tuple[Path, Path]) -> None:
    code = (
        "import sys; from app.engine import Engine, GenerationRequest\n"
        f"with Engine({str(pair_files[0])!r}, {str(pair_files[1])!r}) as engine:\n"
        "    for event in engine.generate(GenerationRequest('Hello', strategy='draft-simple')): pass\n"
        "print(len(event.totals.text) > 0)"
    )
    assert python(code) == "True"


def test_threads_do_not_spin_and_aborts_run_no_debugger() -> None:
    code = (
        "import os, app.engine.native; print(os.environ['GOMP_SPINCOUNT'], os.environ['GGML_NO_BACKTRACE'])"
    )
    environment = {name: value for name, value in os.environ.items() if "GOMP" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1000", "1"]


@pytest.mark.skipif(libgomp is None, reason="passes go without libgomp")
def test_the_thread_of_passes_alone_has_helpers(pair_files: tuple[Path, Path]) -> None:
    # More helpers than cores sleep between two operations, and a pass takes more than twice as long.
    code = (
        "import os, threading\n"
        "from app.engine import Engine, GenerationRequest, ModelOptions\n"
        "def helpers(): return len(os.listdir('/proc/self/task')) - threading.active_count() - before\n"
        "before = 0; before = helpers()\n"
        f"files = (ModelOptions(file, threads=2) for file in {tuple(map(str, pair_files))!r})\n"
        "with Engine(*files) as engine:\n"
        "    print(helpers())\n"
        "    for strategy in ('none', 'draft-simple', 'oracle'):\n"
        "        engine.answer(GenerationRequest('Hello ' * 40, strategy=strategy, max_tokens=4))\n"
        "        print(helpers())\n"
        "    engine.force([])\n"
        "    print(helpers())\n"
        f"    with Engine(ModelOptions({str(pair_files[0])!r}, threads=2)) as other:\n"
        "        other.answer(GenerationRequest('Hello', max_tokens=64))\n"
        "        print(helpers())"
    )
    assert python(code).split() == ["0", "1", "1", "1", "1", "1"]


def test_warnings_are_captured_for_the_time_of_a_block(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(b"GGUF")
    with caplog.at_level(logging.WARNING, "llama.cpp"), captured_log() as lines, captured_log() as inner:
        refusal(path)
    assert lines == inner
    assert any("failed to load model" in line for line in lines)
    assert [record.name for record in caplog.records] == [log.name] * len(lines)
    before = list(lines)
    refusal(path)
    assert lines == before


def test_the_abort_flag() -> None:
    flag = AbortFlag()
    assert not flag.is_set()
    assert not flag.callback(flag.data)
    flag.set()
    assert flag.is_set()
    assert flag.callback(flag.data)
    flag.clear()
    assert not flag.is_set()
    assert not flag.callback(flag.data)


def test_one_core_is_left_to_the_rest_of_the_machine() -> None:
    assert default_threads() == max(1, cores() - 1)
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_a_small_model_gets_fewer_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("app.engine.devices.memory.cores", lambda: 9)
    model = tmp_path / "model.gguf"
    for megabytes, threads in ((0, 1), (1, 1), (15, 1), (16, 2), (40, 5), (500, 8)):
        with model.open("wb") as file:
            file.truncate(megabytes * 2**20)
        assert threads_for(model) == threads
    assert threads_for(tmp_path / "none.gguf") == 8


def test_the_library_tells_what_it_is() -> None:
    assert "=" in system_info()
