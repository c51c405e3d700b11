"""`make package`:

Draftscope with everything that it needs, for machines without Python and compiler. A bundle is a folder. It
contains a relocatable Python with the locked libraries, llama.cpp for every processor of this kind,
Draftscope's own wheel, and a launcher. With --real (`make package REAL=1`) it also contains SmolLM2. On Linux
it becomes a tarball, and one file that can be run. The results are in dist/.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import kernel
import native_build
import real_model
from console import run, say
from interpreter import copy_interpreter, site_packages
from processors import replace_ggml
from pruning import prune
from recipe import LOCKS, ROOT, Choice, default_gpu, make_recipe
from steps import VENV, guarded

DIST = ROOT / "dist"
PYTHON = Path(sys.executable)
WITH_REAL = "--real" in sys.argv
_UNFINISHED = ".bundle-"


def main() -> int:
    return guarded(make)


def make() -> None:
    """Build everything into dist/. Files of the same names are replaced."""
    DIST.mkdir(exist_ok=True)
    with workshop(DIST) as temporary:
        folder = temporary / bundle_name()
        collect(folder)
        finish()(folder)


@contextmanager
def workshop(dist: Path) -> Iterator[Path]:
    """A folder for unfinished files. If an earlier call was killed, its folder is removed first."""
    for left in dist.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=dist, prefix=_UNFINISHED) as temporary:
        yield Path(temporary)


def finish() -> Callable[[Path], None]:
    """The function that makes packages from a collected folder on this system."""
    if sys.platform == "darwin":
        from macos.disk_image import make_disk_image

        return make_disk_image
    if sys.platform == "win32":
        from windows.archive import make_archive

        return make_archive
    from linux.archives import make_archives

    return make_archives


def bundle_name() -> str:
    """Such as draftscope-0.1.0-linux-x86_64, or …-x86_64-smollm2."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    name = f"draftscope-{project['version']}-{system}-{platform.machine().lower()}"
    return f"{name}-smollm2" if WITH_REAL else name


def collect(folder: Path) -> None:
    """Python, libraries, llama.cpp and Draftscope in one folder that may be moved."""
    say("making Draftscope's wheel")
    ours = make_wheel(DIST)
    llama = llama_wheel()
    say("collecting Python and the libraries")
    python = copy_interpreter(folder / "python")
    site = site_packages(python)
    pip = [
        str(PYTHON), "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", str(site),
    ]  # fmt: skip
    env = native_build.pip_environment()
    run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCKS / "app.txt")], env=env)
    run([*pip, "--no-index", str(llama), str(ours)], env=env)
    if sys.platform == "linux":
        replace_ggml(site / "llama_cpp" / "lib")
    elif sys.platform == "win32":
        from windows.llama import place_backends

        place_backends(site)
    prune(site)
    kernel.compile_for_all(folder / "python" / "lib")
    if WITH_REAL:
        real_model.add_to(site, VENV)
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")


def llama_wheel() -> Path:
    """llama.cpp's wheel for a bundle. On Linux only its ggml is specific to this machine; it is replaced. On
    Macs, code for this processor also runs on all later ones of Apple's."""
    if sys.platform == "win32":
        from windows.llama import make_llama_wheel

        return make_llama_wheel()
    return native_build.wheel(make_recipe(Choice(default_gpu())), PYTHON)


def make_wheel(folder: Path) -> Path:
    """Draftscope's wheel. Wheels of other versions in the folder stay."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=_UNFINISHED) as temporary:
        command = [str(PYTHON), "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        run([*command, "--wheel-dir", temporary, str(ROOT)], env=native_build.pip_environment())
        (made,) = Path(temporary).glob("draftscope-*.whl")
        return made.replace(folder / made.name)


if __name__ == "__main__":
    sys.exit(main())
