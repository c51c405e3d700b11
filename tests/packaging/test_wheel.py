"""A wheel installs one package, `draftscope`, that runs with its resources where there is no `app`."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = "import sys; sys.path.insert(0, sys.argv[1]); import backend; print(backend.build_wheel(sys.argv[2]))"
# Without site (-S) the editable install of this tree is not there, in child processes either.
PRELUDE = "import sys; sys.path[:0] = sys.argv[1:3]; del sys.argv[1:3]\n"
IMPORT_ALL = """
import importlib, pkgutil, draftscope
for module in pkgutil.walk_packages(draftscope.__path__, "draftscope."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(*{name.partition(".")[0] for name in sys.modules} & {"app", "draftscope"})
"""
RUN = "import sys; from draftscope.cli import main\nif __name__ == '__main__': sys.exit(main())"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-B", "-c", BUILD, str(ROOT / "packaging" / "wheel"), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(site: Path, home: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program with the wheel's content, and the libraries that are installed here."""
    python = [
        sys.executable,
        "-I",
        "-S",
        "-B",
        "-c",
        PRELUDE + program,
        str(site),
        sysconfig.get_path("purelib"),
    ]
    return subprocess.run(
        [*python, *words],
        cwd=home,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen", "DRAFTSCOPE_HOME": str(home / "home")},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_a_wheel_has_one_package_with_its_resources_and_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        command = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert {name.split("/")[0] for name in names} == {"draftscope", f"draftscope-{version}.dist-info"}
    assert "draftscope = draftscope.cli:main" in command
    for folder in ("demo_pair", "fonts", "icons", "lessons", "plugins", "suites"):
        files = {path.name for path in (ROOT / "resources" / folder).iterdir() if path.is_file()}
        inside = f"draftscope/resources/{folder}/"
        assert files == {name.removeprefix(inside) for name in names if name.startswith(inside)}


def test_every_module_can_be_imported_where_there_is_no_app(site: Path, tmp_path: Path) -> None:
    done = run(site, tmp_path, IMPORT_ALL)
    assert (done.stdout.strip(), done.returncode) == ("draftscope", 0), done.stderr


def test_an_installed_wheel_answers_with_its_bundled_pair(site: Path, tmp_path: Path) -> None:
    words = (
        "run",
        "--chat",
        "--prompt",
        "Tell me a short story.",
        "--max-tokens",
        "4",
        "--trace",
        "answer.jsonl",
    )
    done = run(site, tmp_path, RUN, *words)
    assert done.returncode == 0 and done.stdout.strip(), done.stderr
    done = run(site, tmp_path, RUN, "replay", "answer.jsonl", "--verify")
    assert done.returncode == 0 and "verified" in done.stderr, done.stderr


def test_an_installed_wheel_says_where_a_build_is_made(site: Path, tmp_path: Path) -> None:
    done = run(site, tmp_path, RUN, "devices")
    assert "a package cannot be rebuilt" in done.stdout, done.stderr
