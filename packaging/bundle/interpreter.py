"""The Python of a bundle: a copy of the one below .venv, without the parts that no program needs.

Python finds its library relative to its executable, so a copied tree runs anywhere. It needs the shared
libraries that it was linked with (linux/libraries.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

# Tests, editors, installers, and modules that need libraries which are not carried along: terminal editing
# (GPL), Tk, NIS, databases of old. Everything else stays: drafters of people may import it.
LEFT_OUT = (
    "test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "ensurepip", "venv",
    "pydoc_data", "site-packages", "dist-packages", "__pycache__", "config-*", "*.a", "*.lib",
    "_tkinter*", "nis.*", "_crypt.*", "_curses*", "readline.*", "_gdbm.*", "_dbm.*", "xxlimited*", "_xx*",
    "_test*", "_ctypes_test*",
)  # fmt: skip


def copy_interpreter(folder: Path) -> Path:
    """Copy the base Python of the Python that runs this; returns the executable."""
    base = Path(sys.base_prefix)
    for key in ("stdlib", "platstdlib"):
        library = Path(sysconfig.get_path(key, vars={"base": str(base), "platbase": str(base)}))
        target = folder / library.relative_to(base)
        shutil.copytree(library, target, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    return _copy_windows(base, folder) if sys.platform == "win32" else _copy_unix(base, folder)


def _copy_unix(base: Path, folder: Path) -> Path:
    executable = folder / "bin" / "python3"
    executable.parent.mkdir(parents=True)
    shutil.copyfile(os.path.realpath(sys.executable), executable)
    executable.chmod(0o755)
    _copy_files((base / "lib").glob("libpython3.*[0-9m].*"), folder / "lib")
    return executable


def _copy_windows(base: Path, folder: Path) -> Path:
    _copy_files((*base.glob("python*.exe"), *base.glob("*.dll"), *base.glob("LICENSE*")), folder)
    shutil.copytree(base / "DLLs", folder / "DLLs", ignore=shutil.ignore_patterns(*LEFT_OUT, "tcl*", "tk*"))
    return folder / "python.exe"


def _copy_files(files: Iterable[Path], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for file in files:
        if file.is_file():
            shutil.copyfile(file, folder / file.name, follow_symlinks=False)


def site_packages(python: Path) -> Path:
    """The folder from which a copied Python imports libraries; made if it does not exist."""
    command = [str(python), "-I", "-c", "import site; print(site.getsitepackages()[-1])"]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(python.parents[1] / "lib"),
    }  # not yet made relocatable
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip())
    folder.mkdir(parents=True, exist_ok=True)
    return folder
