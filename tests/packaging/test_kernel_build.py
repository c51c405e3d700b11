"""Set-up compiles the passes over rows, or says that numpy does their work."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.engine.sampling.kernel import load

SETUP = Path(__file__).parents[2] / "packaging" / "setup"
SOURCE = SETUP.parents[1] / "app" / "engine" / "sampling" / "kernel.c"


def compile_into(folder: Path, cflags: str = "", **environment: str) -> str:
    """What set-up says."""
    return in_setup(
        "import kernel; kernel.compile_into(Path(sys.argv[1]), sys.argv[2])",
        str(folder),
        cflags,
        **environment,
    )


def in_setup(code: str, *args: str, **environment: str) -> str:
    """What code of set-up says on standard error."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"import sys; from pathlib import Path; {code}", *args],
        cwd=SETUP,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
def test_the_library_is_the_one_that_the_engine_looks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "lib"
    library.mkdir()
    (library / "draftscope-0123456789abcdef.so").touch()  # from an older source
    assert compile_into(library) == ""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    made = load()
    assert made is not None
    assert made.largest(np.array([1, 3, 2], np.float32), 2) == ([1, 2], [3, 2])
    assert len(list(library.iterdir())) == 1


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
def test_a_bundle_takes_the_library_that_its_processor_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, damaged = tmp_path / "whole" / "lib", tmp_path / "damaged" / "lib"
    whole.mkdir(parents=True)
    in_setup("import kernel; kernel.compile_for_all(Path(sys.argv[1]))", str(whole))
    shutil.copytree(whole, damaged)
    monkeypatch.setattr(sys, "prefix", str(whole.parent))
    made = load()
    assert made is not None
    assert made.largest(np.array([1, 3, 2], np.float32), 2) == ([1, 2], [3, 2])

    common = next(path for path in whole.iterdir() if "avx2" not in path.name)
    if not ctypes.PyDLL(str(common)).has_avx2():
        pytest.skip("this processor has no AVX2")
    monkeypatch.setattr(sys, "prefix", str(damaged.parent))
    (damaged / f"{common.stem}-avx2.so").write_bytes(b"does not load")
    with pytest.warns(RuntimeWarning, match="avx2"):
        assert load() is None


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
@pytest.mark.parametrize("cflags", ["-Ofast", "-ffast-math", "-O2 -funsafe-math-optimizations"])
def test_fast_mathematics_is_not_for_the_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cflags: str
) -> None:
    (tmp_path / "lib").mkdir()
    assert compile_into(tmp_path / "lib", cflags) == ""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    made = load()
    assert made is not None
    row = np.linspace(-20, 0, 1000, dtype=np.float32)
    out = np.empty_like(row)
    made.exponentials(row, 0, out)
    np.testing.assert_allclose(out, np.exp(row.astype(np.float64)), rtol=2 * 2.0**-23)
    row[500] = np.nan
    assert made.largest(row, 10) == ([], [])
    assert sys.float_info.min / 2 > 0, "to load it has not rounded small numbers to 0 in this process"


def test_a_library_that_does_not_load_leaves_the_work_to_numpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    (tmp_path / "lib" / f"draftscope-{digest}.so").write_bytes(b"of another machine")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.warns(RuntimeWarning, match="Numpy processes the rows instead: .*draftscope-"):
        assert load() is None


@pytest.mark.parametrize(
    "compiler", [{"CC": "no-such-compiler"}, {"CC": "false"}, {"cflags": "--no-such-flag"}]
)
def test_one_line_says_so_where_numpy_serves(tmp_path: Path, compiler: dict[str, str]) -> None:
    said = compile_into(tmp_path, **compiler)
    assert len(said.splitlines()) == 1
    assert "numpy" in said
    assert not list(tmp_path.iterdir())
