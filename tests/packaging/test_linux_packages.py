"""The single file unpacks itself once and runs; the desktop's files lead to the program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
DESKTOP = ROOT / "packaging" / "desktop"
SETUP, BUNDLE = ROOT / "packaging" / "setup", ROOT / "packaging" / "bundle"
MAKE = """
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree
from linux.archives import make_single_file, make_tarball
folder, target = map(Path, sys.argv[1:])
print(make_single_file(folder, make_tarball(folder, target), target))
"""
PROGRAM = '#!/bin/sh\necho "$0 $*"\nexit 3\n'
TOOLS = ("tar", "xz", "sha256sum", "readlink")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not all(map(shutil.which, TOOLS)), reason=f"Linux packages need {TOOLS}"
)


def make(tmp_path: Path, version: str) -> Path:
    """A single file whose program says how it was called."""
    folder = tmp_path / f"draftscope-{version}-linux-x86_64"
    folder.mkdir()
    (folder / "draftscope").write_text(PROGRAM, encoding="utf-8")
    (folder / "draftscope").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-B", "-c", MAKE, str(folder), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": f"{SETUP}:{BUNDLE}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def start(file: Path, cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cache.parent), "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(
        [str(file), *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def programs(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "draftscope" / "programs").iterdir())


def test_the_single_file_unpacks_once_and_hands_words_and_code_on(tmp_path: Path) -> None:
    file, cache = make(tmp_path, "1.0"), tmp_path / "a cache"
    first = start(file, cache, "run", "two words")
    (name,) = programs(cache)
    program = cache / "draftscope" / "programs" / name / "draftscope"
    assert first.stdout == f"{program} run two words\n"
    assert first.stderr == f"draftscope: unpacking into {program.parent}, once\n"
    assert first.returncode == 3
    second = start(file, cache)
    assert (second.stdout, second.stderr, second.returncode) == (f"{program} \n", "", 3)


def test_a_damaged_single_file_is_not_unpacked(tmp_path: Path) -> None:
    file, cache = make(tmp_path, "1.0"), tmp_path / "cache"
    file.write_bytes(file.read_bytes()[:-10])
    done = start(file, cache)
    assert done.stderr == "draftscope: This file is damaged: download it again.\n"
    assert (done.stdout, done.returncode) == ("", 1)
    assert not (cache / "draftscope" / "programs").exists()


def test_a_newer_single_file_removes_the_older_folder(tmp_path: Path) -> None:
    old, new, cache = make(tmp_path, "1.0"), make(tmp_path, "2.0"), tmp_path / "cache"
    start(old, cache)
    start(new, cache)
    (left,) = programs(cache)
    assert "-2.0-" in left


def test_a_newer_single_file_leaves_a_version_that_runs(tmp_path: Path) -> None:
    old, new, cache = make(tmp_path, "1.0"), make(tmp_path, "2.0"), tmp_path / "cache"
    start(old, cache)
    (name,) = programs(cache)
    sleeper = cache / "draftscope" / "programs" / name / "python3"
    shutil.copyfile(os.path.realpath(shutil.which("sleep") or ""), sleeper)
    sleeper.chmod(0o755)
    with subprocess.Popen([str(sleeper), "300"]) as running:
        try:
            start(new, cache)
            assert len(programs(cache)) == 2
        finally:
            running.kill()


def desktop(data: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(data.parent), "XDG_DATA_HOME": str(data)}
    subprocess.run(["sh", str(DESKTOP / "desktop.sh"), *words], env=environment, check=True, timeout=60)


def test_the_menu_entry_calls_the_program_whatever_its_path(tmp_path: Path) -> None:
    data = tmp_path / "data"
    desktop(data, "--add-to-desktop", '/opt/a "b" $c\\d 50%/draftscope')
    entry = (data / "applications" / "draftscope.desktop").read_text(encoding="utf-8").splitlines()
    # Quotes, dollars and backslashes have one backslash inside the quotes, and each backslash comes twice.
    assert r'Exec="/opt/a \\"b\\" \\$c\\\\d 50%%/draftscope" %f' in entry
    assert sum(line.startswith("Exec=") for line in entry) == 1
    assert (data / "icons" / "hicolor" / "scalable" / "apps" / "draftscope.svg").is_file()
    desktop(data, "--remove-from-desktop")
    assert list(data.rglob("draftscope*")) == []


@pytest.mark.skipif(
    not all(map(shutil.which, ("gio", "update-mime-database"))), reason="there is no GIO here"
)
def test_the_desktop_tells_a_trace_from_other_json_lines(tmp_path: Path) -> None:
    data = tmp_path / "data"
    desktop(data, "--add-to-desktop", "/opt/draftscope")
    trace = ROOT / "resources" / "lessons" / "07-temperature.jsonl"
    other = tmp_path / "other.jsonl"
    other.write_text('{"loss": 1.5}\n')
    kinds = [
        subprocess.run(
            ["gio", "info", "-a", "standard::content-type", str(file)],
            env=os.environ | {"XDG_DATA_HOME": str(data)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.split()[-1]
        for file in (trace, other)
    ]
    assert kinds[0] == "application/vnd.draftscope.trace+jsonl" != kinds[1]


def test_appstream_tells_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    told = DESKTOP / "draftscope.metainfo.xml"
    newest = ElementTree.parse(told).find("releases/release")
    assert newest is not None and newest.get("version") == version
    if validator := shutil.which("appstreamcli"):
        subprocess.run([validator, "validate", "--no-net", str(told)], check=True, timeout=60)


def test_a_bundle_keeps_every_part_of_qt_that_the_program_imports() -> None:
    kept = subprocess.run(
        [sys.executable, "-B", "-c", "from pruning import IMPORTED; print(*IMPORTED)"],
        env=os.environ | {"PYTHONPATH": f"{SETUP}:{BUNDLE}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.split()
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py")]
    imported = {part for text in sources for part in re.findall(r"PySide6\.Qt(\w+)", text)}
    assert "Widgets" in imported and imported <= {*kept}


def test_what_a_killed_call_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from package import workshop\n"
        "with workshop(Path(sys.argv[1])) as folder:\n"
        "    (folder / 'python').mkdir(); print(folder.name, flush=True)\n"
        "    if sys.argv[2] == 'killed': os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SETUP, BUNDLE)))}
    finished = tmp_path / "draftscope.whl"
    finished.touch()
    for how in ("killed", "to the end"):
        command = [sys.executable, "-c", code, str(tmp_path), how]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout.startswith(".bundle-"), done.stderr
        left = [path.name for path in tmp_path.iterdir() if path != finished]
        assert left == ([done.stdout.strip()] if how == "killed" else [])
    assert finished.exists()
